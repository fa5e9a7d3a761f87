package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
)

// proxy stands between clients and moto: it delays each request, and counts requests.
type proxy struct {
	*faults.Proxy
	url    string
	server *http.Server
}

func newProxy(ctx context.Context, address, target string, delay time.Duration) (*proxy, error) {
	// Moto does not keep connections alive.
	through := &http.Transport{DisableKeepAlives: true}
	late, err := faults.New(target, through, ec2.Dialect(), 0)
	if err != nil {
		return nil, err
	}
	late.Script(faults.Rule{Kind: faults.Delay, Delay: delay})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	p := &proxy{Proxy: late, url: "http://" + listener.Addr().String(),
		server: &http.Server{Handler: late, ReadHeaderTimeout: time.Minute}}
	go func() { _ = p.server.Serve(listener) }() // It ends with http.ErrServerClosed.
	return p, nil
}

func (p *proxy) close() { _ = p.server.Close() } // The error has no receiver.

// since counts the requests after the first n, by their action.
func (p *proxy) since(n int) map[string]int {
	calls := map[string]int{}
	for _, event := range p.Log()[n:] {
		calls[event.Action]++
	}
	return calls
}
