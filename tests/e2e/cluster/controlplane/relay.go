package controlplane

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
)

// relay forwards each connection to the address. A socket stays in the network namespace in which it was created, so
// that the host reaches the API server without an interface, route or address.
func relay(ctx context.Context, log *slog.Logger, listener net.Listener, address string) {
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for {
		client, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				log.Error("the host cannot reach the API server any more", "error", err)
			}
			return
		}
		go func() {
			// The client sees a closed connection, and retries.
			if err := pass(ctx, client, address); err != nil {
				log.Debug("connection from the host", "error", err)
			}
		}()
	}
}

func pass(ctx context.Context, client net.Conn, address string) error {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	var group sync.WaitGroup
	group.Go(func() { oneWay(server, client) })
	oneWay(client, server)
	group.Wait()
	return nil
}

// oneWay copies until the source ends, and then closes the write side of the destination.
func oneWay(destination, source net.Conn) {
	if _, err := io.Copy(destination, source); err != nil {
		// The other direction is useless without this one.
		_ = destination.Close()
		return
	}
	if half, ok := destination.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // It may already be closed.
	}
}
