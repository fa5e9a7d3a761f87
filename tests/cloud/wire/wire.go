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

// Serve serves a handler on a network of its own until the test ends, and returns what connects to it: whatever the
// address is. Connections are not kept, so that none is left when the test is done.
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
		_ = server.Close() // closes what is left
		<-done
	})
	return transport{t}
}

// transport sends bodies that are its own. The AWS SDK closes a request's body when the answer begins, and here an
// answer may begin before the write has returned that it answers: net/http then takes the request for broken.
type transport struct{ http.RoundTripper }

// RoundTrip is http.RoundTripper's.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return t.RoundTripper.RoundTrip(r)
	}
	own := r.Clone(r.Context())
	own.Body = &body{given: r.Body}
	return t.RoundTripper.RoundTrip(own)
}

// body is read as a whole once there is a connection, and not before, as by net/http itself.
type body struct {
	given io.ReadCloser
	once  sync.Once
	text  *bytes.Reader
	err   error
}

// Read is io.Reader's.
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

// Close is io.Closer's.
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
