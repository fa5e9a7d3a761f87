package localvolume

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// beginsWithin is how long a worker may take to begin.
	beginsWithin = 20 * time.Second
	// silentFor is how long a node is asked after all others that let an order wait in vain.
	silentFor = 5 * time.Minute
	// waitKept is how long it is known since when an order waits: calls for it come more often.
	waitKept = time.Hour
)

// silence remembers which orders wait for workers that do not begin, since a call may be shorter than the patience with
// a worker, and which nodes have let one wait in vain. It is lost with the process, which then waits anew.
type silence struct {
	mu    sync.Mutex
	waits map[types.UID]time.Time // since when an order was seen that was not begun
	nodes map[string]time.Time    // when an order of the node was given up
}

func newSilence() *silence {
	return &silence{waits: map[types.UID]time.Time{}, nodes: map[string]time.Time{}}
}

// waitsSince is when the order was first seen that is not begun.
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

// isSilent reports whether a node has let an order wait in vain of late.
func (s *silence) isSilent(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.nodes[node]
	return ok && time.Since(at) < silentFor
}
