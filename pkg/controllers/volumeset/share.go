package volumeset

import "sync"

// How much of the workers that the others leave somebody may have, in quarters. All sets of a class have more than one
// set of it, so that one that hangs leaves some to the others of its class.
const (
	half = 2
	most = 3
)

// shares deals workers out to those who keep them for as long as a driver hangs: sets, and classes.
type shares struct {
	workers  int
	quarters int // of those that the others leave
	mu       sync.Mutex
	busy     map[string]int
}

// admit gives somebody one worker more, if he has less than his share of those that the others leave. So those whose
// driver hangs leave some to all others.
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

// leave gives the worker back.
func (s *shares) leave(whose string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[whose]--; s.busy[whose] == 0 {
		delete(s.busy, whose)
	}
}

// admit gives a set one worker more, if it and all sets of its class have less than their shares, and returns the
// class. A slot that is not admitted waits until a worker is free.
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

// leave gives the worker back, and lets those try that wait for one.
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
