package local

import (
	"fmt"
	"maps"
)

// adopt puts what was found in a pool under its handle. Should the handle be taken already, nobody can tell which
// of the two the orchestrator means: neither can be used from now on.
func (s *shelf[T]) adopt(handle string, item T, pool, path string) *away {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = nil
	_, taken := s.items[handle]
	if _, making := s.making[handle]; taken || making {
		s.away[handle] = &away{pool: pool, reason: handleInTwoPlaces, why: fmt.Errorf(
			"another pool has a %s of the same name as %s: move the one that is not wanted out of its pool and start again",
			s.what, path)}
		return s.away[handle]
	}
	s.items[handle] = item
	if a := s.away[handle]; a != nil && a.pool == pool {
		delete(s.away, handle)
	}
	return nil
}

// exclude notes what is there and cannot be used.
func (s *shelf[T]) exclude(handle string, a *away) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.away[handle]; other == nil || other.pool == a.pool {
		s.away[handle] = a
		s.order = nil
	}
}

// doubt notes that nobody knows what is in a pool.
func (s *shelf[T]) doubt(a *away) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubts[a.pool] = a
}

// settlePool ends what was noted of a pool as a whole: from now on it is known what is in it.
func (s *shelf[T]) settlePool(pool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = nil
	delete(s.doubts, pool)
	maps.DeleteFunc(s.away, func(_ string, a *away) bool { return a.pool == pool && a.ofPool() })
}

// readmit ends what was noted of a handle.
func (s *shelf[T]) readmit(handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.away, handle)
	s.order = nil
}

// awayOf returns why what has the handle cannot be used, and nil when it can or is not there.
func (s *shelf[T]) awayOf(handle string) *away {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away[handle]
}

// awayFrom returns what cannot be used of a pool.
func (s *shelf[T]) awayFrom(pool string) map[string]*away {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]*away{}
	for handle, a := range s.away {
		if a.pool == pool {
			found[handle] = a
		}
	}
	return found
}

// here returns the item of the handle, whether it can be used or not.
func (s *shelf[T]) here(handle string) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.items[handle]
	return item, ok
}
