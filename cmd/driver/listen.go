package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/stowage-csi/stowage/pkg/driver"
)

// listeners are the sockets of a process.
type listeners struct {
	csi  net.Listener
	http net.Listener // nil for none
}

// listen opens all sockets of the process. A failure must be known before the backend is opened, which may change its
// stored state.
func (o *options) listen(ctx context.Context) (*listeners, error) {
	csi, err := driver.Listen(ctx, o.endpoint)
	if err != nil {
		return nil, fmt.Errorf("--endpoint: %w", err)
	}
	at := &listeners{csi: csi}
	if o.httpEndpoint == "" {
		return at, nil
	}
	at.http, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.httpEndpoint)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--http-endpoint: %w", err), csi.Close())
	}
	return at, nil
}

// close closes the listeners on which nothing was served; a server has closed its own.
func (l *listeners) close() {
	_ = l.csi.Close()
	if l.http != nil {
		_ = l.http.Close()
	}
}

// serveHTTP serves metrics and health until the returned function is called. That is later than the end of ctx, so that
// the end of the last requests is still measured.
func (l *listeners) serveHTTP(ctx context.Context, metrics *driver.Metrics, log *slog.Logger) (stop func()) {
	if l.http == nil {
		return func() {}
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := driver.ServeHTTP(life, l.http, metrics); err != nil {
			log.Error("the HTTP endpoint failed", "endpoint", l.http.Addr(), "error", err)
		}
	}()
	return func() { cancel(); <-done }
}
