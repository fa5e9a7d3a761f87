package nfsd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Proxy is a proxy between clients and the server that can be slow or cut connections. Clients mount with port=Port().
// With NFS 3 they also need mountport=20048, because mountd is not behind the proxy.
type Proxy struct {
	listener net.Listener
	group    sync.WaitGroup

	mu     sync.Mutex
	delay  time.Duration
	paused chan struct{} // set while paused; closed to continue
	conns  map[net.Conn]struct{}
}

// NewProxy starts a proxy on the loopback address.
func NewProxy(ctx context.Context) (*Proxy, error) { return NewProxyOn(ctx, "127.0.0.1:0") }

// NewProxyOn starts a proxy on an address and port. On 127.0.0.2:2049, clients need no port option if the server
// listens only on 127.0.0.1. But while such clients have 127.0.0.1 mounted too, they detect that both are one server,
// and use the existing connection.
func NewProxyOn(ctx context.Context, address string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", address)
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, conns: map[net.Conn]struct{}{}}
	p.group.Go(p.serve)
	return p, nil
}

// Port returns the proxy's port.
func (p *Proxy) Port() int {
	address, ok := p.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return address.Port
}

// Delay delays all data by d in each direction; the default is 0.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Pause stops all data until Continue. Connections stay open: the server exists and does not answer.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// Continue ends a Pause.
func (p *Proxy) Continue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// Cut breaks all connections. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close() // It may already be closed.
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Continue()
	p.Cut()
	p.group.Wait()
	return err
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.group.Go(func() { p.join(client) })
	}
}

// join connects a client to the server until one of them closes.
func (p *Proxy) join(client net.Conn) {
	defer p.drop(client)
	server, err := dialServer()
	if err != nil {
		return
	}
	defer p.drop(server)
	p.hold(client, server)
	var both sync.WaitGroup
	both.Go(func() { p.pass(server, client) })
	both.Go(func() { p.pass(client, server) })
	both.Wait()
}

// dialServer connects to the server from a privileged port: by default, the server trusts no other.
func dialServer() (net.Conn, error) {
	const least, last = 665, 1023 // lower ones are more often used by services
	from := last
	for {
		// Stimulus: one attempt of many; the kernel's client connects again.
		dialer := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: from}}
		conn, err := dialer.DialContext(context.Background(), "tcp4", fmt.Sprintf("127.0.0.1:%d", Port))
		if from--; err == nil || from < least || !errors.Is(err, unix.EADDRINUSE) && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return conn, err
		}
	}
}

// pass copies one direction. Its end ends both directions.
func (p *Proxy) pass(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }() // the other direction does the same
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			p.wait()
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait delays a piece of data before it is passed on.
func (p *Proxy) wait() {
	p.mu.Lock()
	delay, paused := p.delay, p.paused
	p.mu.Unlock()
	if paused != nil {
		<-paused
	}
	if delay > 0 {
		<-time.After(delay)
	}
}

func (p *Proxy) hold(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = struct{}{}
	}
}

func (p *Proxy) drop(conn io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = conn.Close() // It may already be closed.
	if held, ok := conn.(net.Conn); ok {
		delete(p.conns, held)
	}
}
