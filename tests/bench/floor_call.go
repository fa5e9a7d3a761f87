package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// startTimeout limits the time to a server's first answer.
const startTimeout = 2 * time.Minute

// pollInterval is the interval of readiness checks.
const pollInterval = 10 * time.Millisecond

// emptyServer answers Probe with an empty response, without doing anything.
type emptyServer struct {
	csi.UnimplementedIdentityServer
}

// Probe implements csi.IdentityServer.
func (emptyServer) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// serveFloor serves empty RPCs on the socket until the parent closes its end of stdin, which its death does too.
func serveFloor(ctx context.Context, socket string, stdin io.Reader) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, emptyServer{})
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // Whatever the result, the parent is gone.
		server.Stop()
	}()
	return server.Serve(listener)
}

// measureCalls runs this program again as a server: a server in the same process would share its scheduler, and be
// cheaper than any driver can be.
func (f *floor) measureCalls(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server := exec.CommandContext(ctx, self, "-floor-server", f.socket)
	server.Stderr = os.Stderr
	hold, err := server.StdinPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	err = f.callServer(ctx)
	return errors.Join(err, hold.Close(), server.Wait())
}

func (f *floor) callServer(ctx context.Context) error {
	conn, err := dial(f.socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // The server is stopped next.
	client := csi.NewIdentityClient(conn)
	if err := waitReady(ctx, client); err != nil {
		return err
	}
	call := func() error {
		_, err := client.Probe(ctx, &csi.ProbeRequest{})
		return err
	}
	if err := repeat(ctx, callRounds/10, func(int) error { return call() }); err != nil { // This fills the caches.
		return err
	}
	return repeat(ctx, callRounds, func(int) error { return f.call.time(call) })
}

// dial connects to a socket that may not exist yet, with frequent retries.
func dial(socket string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	quick := backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.2, MaxDelay: 100 * time.Millisecond}
	return grpc.NewClient("unix://"+socket, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: startTimeout}))...)
}

// waitReady waits until a server answers Probe with ready.
func waitReady(ctx context.Context, client csi.IdentityClient) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it is not ready after %s", startTimeout))
	defer cancel()
	for {
		answer, err := client.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("Probe: %w", err)
		}
		if answer.GetReady() == nil || answer.GetReady().GetValue() {
			return nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
	}
}
