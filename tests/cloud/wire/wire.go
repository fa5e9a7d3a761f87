package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Serve serves a handler on its own network until the test ends. It returns a transport that connects to it, whatever
// the address. Connections do not outlive the test.
func Serve(tb testing.TB, handler http.Handler) http.RoundTripper {
	tb.Helper()
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 0} // all clients are the test's own
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // It ends with http.ErrServerClosed.
	}()
	t := &http.Transport{DialContext: l.dial}
	tb.Cleanup(func() {
		t.CloseIdleConnections()
		_ = server.Close() // closes the remaining connections
		<-done
	})
	return transport{t}
}

// transport sends its own copies of bodies. The AWS SDK closes a request's body when the answer begins. Here an answer
// may begin before the write of the request has returned, and net/http would then regard the request as broken.
type transport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return t.RoundTripper.RoundTrip(r)
	}
	own := r.Clone(r.Context())
	own.Body = &body{given: r.Body}
	return t.RoundTripper.RoundTrip(own)
}

// body reads the whole body once there is a connection, and not before, as net/http itself does.
type body struct {
	given io.ReadCloser
	once  sync.Once
	text  *bytes.Reader
	err   error
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	b.once.Do(func() {
		text, err := io.ReadAll(b.given)
		b.text, b.err = bytes.NewReader(text), errors.Join(err, b.given.Close())
	})
	if b.err != nil {
		return 0, b.err
	}
	return b.text.Read(into)
}

// Close implements io.Closer.
func (b *body) Close() error { return nil }

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

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }
