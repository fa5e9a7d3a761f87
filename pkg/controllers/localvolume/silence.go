package localvolume

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// beginsWithin is the time in which a worker must begin.
	beginsWithin = 20 * time.Second
	// silentFor is how long a node that did not begin an order is asked only after all others.
	silentFor = 5 * time.Minute
	// waitKept is how long the start of an order's wait is remembered. Retries come more often.
	waitKept = time.Hour
)

// silence remembers which orders wait for workers to begin, since a call may be shorter than beginsWithin, and which
// nodes did not begin an order. It is lost when the process ends, and the wait starts again.
type silence struct {
	mu    sync.Mutex
	waits map[types.UID]time.Time // when an order was first seen that is not begun
	nodes map[string]time.Time    // when an order of the node was given up
}

func newSilence() *silence {
	return &silence{waits: map[types.UID]time.Time{}, nodes: map[string]time.Time{}}
}

// waitsSince returns when the order, which is not begun, was first seen.
func (s *silence) waitsSince(order types.UID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.waits, func(_ types.UID, at time.Time) bool { return time.Since(at) > waitKept })
	if _, ok := s.waits[order]; !ok {
		s.waits[order] = time.Now()
	}
	return s.waits[order]
}

// noteBegun notes that the worker of a node has begun with an order.
func (s *silence) noteBegun(order types.UID, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, order)
	delete(s.nodes, node)
}

// noteSilent notes that the worker of a node has not begun with an order.
func (s *silence) noteSilent(order types.UID, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, order)
	s.nodes[node] = time.Now()
}

// isSilent reports whether a node recently did not begin an order.
func (s *silence) isSilent(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.nodes[node]
	return ok && time.Since(at) < silentFor
}
