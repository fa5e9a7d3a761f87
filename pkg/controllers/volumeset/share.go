package volumeset

import "sync"

// shares deals workers out to those who keep them for as long as a driver hangs: sets, and classes.
type shares struct {
	workers int
	mu      sync.Mutex
	busy    map[string]int
}

// admit gives somebody one worker more, if he has less than his share: half of those that the others leave. So those
// whose driver hangs leave some to all others.
func (s *shares) admit(whose string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, all := s.busy[whose], 0
	for _, number := range s.busy {
		all += number
	}
	if share := max(1, (s.workers-(all-own))/2); own >= share {
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

// admit gives a set one worker more, if it has less than its share. A slot that is not admitted waits until a worker is
// free.
func (f *filler) admit(key slotKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.shares.admit(key.set) {
		f.parked = append(f.parked, key)
		return false
	}
	return true
}

// leave gives the worker back, and lets those try that wait for one.
func (f *filler) leave(key slotKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shares.leave(key.set)
	for _, waits := range f.parked {
		f.queue.Add(waits)
	}
	f.parked = nil
}
