package local

import (
	"fmt"
	"maps"
)

// adopt puts an item that was found in a pool on the shelf. If the handle is taken, it is ambiguous to the
// orchestrator: neither item can be used from now on.
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

// exclude records that the item with the handle cannot be used.
func (s *shelf[T]) exclude(handle string, a *away) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.away[handle]; other == nil || other.pool == a.pool {
		s.away[handle] = a
		s.order = nil
	}
}

// doubt records that the contents of a pool are unknown.
func (s *shelf[T]) doubt(a *away) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubts[a.pool] = a
}

// settlePool removes the entries about a pool as a whole: its contents are known from now on.
func (s *shelf[T]) settlePool(pool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = nil
	delete(s.doubts, pool)
	maps.DeleteFunc(s.away, func(_ string, a *away) bool { return a.pool == pool && a.ofPool() })
}

// readmit removes the entry of a handle from away.
func (s *shelf[T]) readmit(handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.away, handle)
	s.order = nil
}

// awayOf returns why the item with the handle cannot be used; nil if it can, or does not exist.
func (s *shelf[T]) awayOf(handle string) *away {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away[handle]
}

// awayFrom returns the unusable items of a pool, by handle.
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

// here returns the item with the handle, whether or not it can be used.
func (s *shelf[T]) here(handle string) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.items[handle]
	return item, ok
}
