package wire

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Serve serves a handler on a network of its own until the test ends, and returns what connects to it: whatever the address
// is. Connections are not kept, so that none is left when the test is done.
func Serve(tb testing.TB, handler http.Handler) *http.Transport {
	tb.Helper()
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 0} //nolint:gosec // all clients are the test's own
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // It ends with http.ErrServerClosed.
	}()
	transport := &http.Transport{DialContext: l.dial}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close() // closes what is left
		<-done
	})
	return transport
}

// listener is a net.Listener whose connections are pipes.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept is net.Listener's.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close is net.Listener's.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is net.Listener's.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }
