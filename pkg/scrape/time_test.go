package scrape

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestClientsHaveSoLong has clients that keep a connection open without progress.
func TestClientsHaveSoLong(t *testing.T) {
	const request = "GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n"
	for name, client := range map[string]func(t *testing.T, c net.Conn){
		"asks nothing": func(*testing.T, net.Conn) {},
		"asks a half":  func(t *testing.T, c net.Conn) { write(t, c, request[:len(request)/2]) },
		"asks slowly": func(t *testing.T, c net.Conn) {
			for i := 0; i < len(request)-1 && t.Context().Err() == nil; i++ {
				if _, err := io.WriteString(c, request[i:i+1]); err != nil {
					return
				}
				time.Sleep(time.Second) //nolint:forbidigo // Simulated time.
			}
		},
		"asks once": func(t *testing.T, c net.Conn) {
			write(t, c, request)
			if n, err := c.Read(make([]byte, 1<<16)); n == 0 || err != nil {
				t.Errorf("the answer has %d bytes, %v", n, err)
			}
		},
		"reads no answer": func(_ *testing.T, c net.Conn) { _, _ = io.WriteString(c, strings.Repeat(request, 1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { isLetGo(t, client) })
		})
	}
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Error(err)
	}
}

// isLetGo checks that the server closes the connection of a client.
func isLetGo(t *testing.T, client func(t *testing.T, c net.Conn)) {
	t.Helper()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "some", Help: "Something."}))
	c, accepted := net.Pipe()
	let := &once{conn: accepted, end: make(chan struct{}), closed: make(chan struct{})}
	server := Server(metrics, nil)
	done := make(chan error, 1)
	go func() { done <- server.Serve(Limit(let)) }()
	go client(t, c)
	begun := time.Now()
	select {
	case <-let.closed:
		t.Logf("closed after %s", time.Since(begun))
	case <-time.After(time.Hour):
		t.Error("the connection is open after an hour")
	}
	if err := errors.Join(server.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("the server ended with %v", err)
	}
}

// once is a listener that accepts one connection, and signals when that connection is closed.
type once struct {
	conn         net.Conn
	isAccepted   bool
	end, closed  chan struct{}
	ended, close sync.Once
}

func (o *once) Accept() (net.Conn, error) {
	if !o.isAccepted {
		o.isAccepted = true
		return told{o.conn, o}, nil
	}
	<-o.end
	return nil, net.ErrClosed
}

func (o *once) Close() error   { o.ended.Do(func() { close(o.end) }); return nil }
func (o *once) Addr() net.Addr { return o.conn.LocalAddr() }

type told struct {
	net.Conn
	of *once
}

func (c told) Close() error {
	c.of.close.Do(func() { close(c.of.closed) })
	return c.Conn.Close()
}
