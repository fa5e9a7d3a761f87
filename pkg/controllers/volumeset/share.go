package volumeset

import "sync"

// Shares of the workers not used by others, in quarters. When volumes are created, a set may occupy half and a class
// most of them, so a set that hangs leaves workers to the other sets of its class.
const (
	half = 2
	most = 3
)

// shares assigns workers to users: sets or classes. A user occupies its workers for as long as its driver hangs.
type shares struct {
	workers  int
	quarters int // of the workers that others do not use
	mu       sync.Mutex
	busy     map[string]int
}

// admit assigns one more worker to a user that has less than its share of the workers that others do not use. Users
// whose driver hangs thus leave workers to all others.
func (s *shares) admit(whose string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, all := s.busy[whose], 0
	for _, number := range s.busy {
		all += number
	}
	if share := max(1, (s.workers-(all-own))*s.quarters/4); own >= share {
		return false
	}
	if s.busy == nil {
		s.busy = map[string]int{}
	}
	s.busy[whose]++
	return true
}

// leave releases a worker.
func (s *shares) leave(whose string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[whose]--; s.busy[whose] == 0 {
		delete(s.busy, whose)
	}
}

// admit assigns one more worker to a set if the set and its class have less than their shares, and returns the class. A
// slot that is not admitted waits until a worker is free.
func (f *filler) admit(key slotKey) (class string, may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	class = f.of(key).class
	if may = f.classes.admit(class); may && !f.shares.admit(key.set) {
		f.classes.leave(class)
		may = false
	}
	if !may {
		f.parked = append(f.parked, key)
	}
	return class, may
}

// leave releases the worker, and queues the slots that wait for one.
func (f *filler) leave(key slotKey, class string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shares.leave(key.set)
	f.classes.leave(class)
	for _, waits := range f.parked {
		f.queue.Add(waits)
	}
	f.parked = nil
}
