package attach

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// slots bound how many operations run at a time, per node and overall.
type slots struct {
	perNode int64
	all     *semaphore.Weighted

	mu    sync.Mutex
	nodes map[string]*lane
}

// lane holds one node's slots. It is dropped when it has no users.
type lane struct {
	slots *semaphore.Weighted
	users int
}

func newSlots(perNode, all int64) *slots {
	return &slots{perNode: perNode, all: semaphore.NewWeighted(all), nodes: map[string]*lane{}}
}

// take waits first for a slot of the node, then for an overall slot, so that callers waiting for a slow node delay no
// other node. Kinds: Busy when the context ends first.
func (s *slots) take(ctx context.Context, node string) (release func(), err error) {
	l := s.enter(node)
	if err := acquire(ctx, l.slots, fmt.Sprintf("too much is under way on node %q", node)); err != nil {
		s.exit(node, l)
		return nil, err
	}
	if err := acquire(ctx, s.all, "too much is under way"); err != nil {
		l.slots.Release(1)
		s.exit(node, l)
		return nil, err
	}
	return func() {
		s.all.Release(1)
		l.slots.Release(1)
		s.exit(node, l)
	}, nil
}

// acquire waits for a slot, and tells callers that leave meanwhile why none is free. Kinds: Busy when the context ends
// first.
func acquire(ctx context.Context, of *semaphore.Weighted, why string) error {
	if ctx.Err() == nil && of.TryAcquire(1) {
		return nil
	}
	flight.Because(ctx, failure.Errorf(failure.Busy, "%s: ask again", why))
	if err := of.Acquire(ctx, 1); err != nil {
		return failure.Errorf(failure.Busy, "%s: ask again: %w", why, err)
	}
	return nil
}

func (s *slots) enter(node string) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.nodes[node]
	if !ok {
		l = &lane{slots: semaphore.NewWeighted(s.perNode)}
		s.nodes[node] = l
	}
	l.users++
	return l
}

func (s *slots) exit(node string, l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(s.nodes, node)
	}
}
