package scrape

import (
	"net"
	"slices"
	"sync"
)

// MaxConnections is the maximum number of open connections: scrapers and probes need a few.
const MaxConnections = 64

// Limit bounds the number of a listener's open connections. A new connection replaces the oldest, which is closed. If
// it waited instead, idle clients would block a kubelet's probe until the kubelet ends the process.
func Limit(listener net.Listener) net.Listener { return &limited{Listener: listener} }

type limited struct {
	net.Listener
	mu   sync.Mutex
	open []*connection // the oldest first
}

func (l *limited) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, of: l}
	if oldest := l.add(c); oldest != nil {
		_ = oldest.Conn.Close() // The server's own Close follows.
	}
	return c, nil
}

// add returns the connection that a new one replaces, if any.
func (l *limited) add(c *connection) (oldest *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == MaxConnections {
		oldest, l.open = l.open[0], l.open[1:]
	}
	l.open = append(l.open, c)
	return oldest
}

type connection struct {
	net.Conn
	of *limited
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(other *connection) bool { return other == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}
