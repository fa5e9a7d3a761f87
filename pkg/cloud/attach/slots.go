package attach

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

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
	if err := l.slots.Acquire(ctx, 1); err != nil {
		s.exit(node, l)
		return nil, failure.Errorf(failure.Busy, "too much is under way on node %q: ask again: %w", node, err)
	}
	if err := s.all.Acquire(ctx, 1); err != nil {
		l.slots.Release(1)
		s.exit(node, l)
		return nil, failure.Errorf(failure.Busy, "too much is under way: ask again: %w", err)
	}
	return func() {
		s.all.Release(1)
		l.slots.Release(1)
		s.exit(node, l)
	}, nil
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
