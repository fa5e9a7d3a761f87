package scrape

import (
	"net"
	"testing"
	"time"
)

// TestTheOldestGoes: idle clients do not delay later ones.
func TestTheOldestGoes(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a local socket
	if err != nil {
		t.Fatal(err)
	}
	listener := Limit(inner)
	defer listener.Close()
	var clients, accepted []net.Conn
	connect := func() {
		t.Helper()
		client, err := net.Dial("tcp", inner.Addr().String()) //nolint:noctx // a local socket
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		clients = append(clients, client)
		done := make(chan error, 1)
		go func() {
			c, err := listener.Accept()
			accepted = append(accepted, c)
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("a new connection waits for older ones")
		}
	}
	isClosed := func(number int, want bool) {
		t.Helper()
		_, err := accepted[number].Write([]byte("x"))
		if (err != nil) != want {
			t.Errorf("connection %d is closed: %v, want %t", number, err, want)
		}
	}
	for range MaxConnections {
		connect()
	}
	isClosed(0, false)
	connect()
	isClosed(0, true)
	isClosed(1, false)
	// A connection that has ended by itself makes room.
	if err := accepted[2].Close(); err != nil {
		t.Fatal(err)
	}
	connect()
	isClosed(1, false)
	connect()
	isClosed(1, true)
	isClosed(3, false)
}
