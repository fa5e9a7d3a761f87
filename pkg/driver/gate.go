package driver

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gate counts the requests under way, and refuses new ones once it is closed.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside int
	idle   chan struct{} // closed when the gate is closed and nothing is inside
}

func newGate() *gate { return &gate{idle: make(chan struct{})} }

// admit refuses requests once the gate is closed: a request that began then would only be cancelled halfway.
func (g *gate) admit() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if !g.enter() {
			return nil, status.Error(codes.Unavailable, "the driver is stopping: ask again once it has been started again")
		}
		defer g.leave()
		return handler(ctx, request)
	}
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.idle)
	}
}

// close closes the gate, once. The returned channel is closed when the last request has left.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.inside == 0 {
		close(g.idle)
	}
	return g.idle
}
