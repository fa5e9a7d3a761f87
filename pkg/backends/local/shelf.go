package local

import (
	"maps"
	"slices"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// shelf is the index of all volumes, snapshots or groups by handle. It is the only way from a handle of a request to
// anything on disk. Its mutex is held for lookups and updates, never during I/O.
type shelf[T any] struct {
	what string // for messages

	mu     sync.Mutex
	items  map[string]T
	making map[string]struct{} // handles that are reserved
	away   map[string]*away    // items that exist but cannot be used; an entry hides an item of the same handle
	doubts map[string]*away    // pools, by name, whose contents are unknown
	order  []string            // the handles of items and away, sorted; nil after a change
}

func newShelf[T any](what string) *shelf[T] {
	return &shelf[T]{
		what: what, items: map[string]T{}, making: map[string]struct{}{}, away: map[string]*away{},
		doubts: map[string]*away{},
	}
}

// reserve reserves the handle for an item that is to be created; settle or abandon must follow. Kinds: Unusable when
// there is one that cannot be used now; Exists when there is one; Busy while one is being made.
func (s *shelf[T]) reserve(handle string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.away[handle]; a != nil {
		return a.err()
	}
	if _, ok := s.items[handle]; ok {
		return backends.Errorf(backends.Exists, "there is a %s of that name: it is %s", s.what, handle)
	}
	if _, ok := s.making[handle]; ok {
		return backends.Errorf(backends.Busy, "a %s of that name is being made: ask again", s.what)
	}
	s.making[handle] = struct{}{}
	return nil
}

// settle puts a new item on the shelf.
func (s *shelf[T]) settle(handle string, item T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, handle)
	s.items[handle] = item
	s.order = nil
}

// abandon releases a reserved handle.
func (s *shelf[T]) abandon(handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, handle)
}

func (s *shelf[T]) remove(handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, handle)
	s.order = nil
}

// get returns the item with the handle. Kinds: Unusable; NotFound.
func (s *shelf[T]) get(handle string) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.items[handle]
	if a := s.away[handle]; a != nil {
		return item, a.err()
	}
	if ok {
		return item, nil
	}
	for _, a := range s.doubts {
		return item, backends.Errorf(backends.Unusable, "it may be in pool %q, which cannot be used now: %w", a.pool, a.why)
	}
	return item, backends.Errorf(backends.NotFound, "there is no such %s", s.what)
}

// toDelete returns the item that is to be deleted. A caller can derive the handle from the name, and so ask while the
// item is being created. It must not be told that the item is gone, because it would appear later. Kinds: Busy while it
// is being made; those of get.
func (s *shelf[T]) toDelete(handle string) (T, error) {
	if s.isMade(handle) {
		var none T
		return none, backends.Errorf(backends.Busy, "the %s is being made: ask again", s.what)
	}
	return s.get(handle)
}

// isMade reports whether an item with the handle is being created.
func (s *shelf[T]) isMade(handle string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, making := s.making[handle]
	return making
}

// entry is an item with its handle.
type entry[T any] struct {
	handle string
	item   T     // the zero value for an item that is away and was never read
	away   *away // why it cannot be used now
}

func (e entry[T]) key() string { return e.handle }

// after returns the entries whose handles sort after the given one, in order, and for which keep returns true: at most
// limit of them; 0 means no limit.
func (s *shelf[T]) after(handle string, limit int, keep func(entry[T]) bool) (entries []entry[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, there := slices.BinarySearch(s.sorted(), handle)
	if there {
		at++
	}
	for _, h := range s.order[at:] {
		if e := (entry[T]{h, s.items[h], s.away[h]}); keep(e) {
			entries = append(entries, e)
		}
		if limit > 0 && len(entries) == limit {
			break
		}
	}
	return entries
}

// all returns all entries, in the order of the handles.
func (s *shelf[T]) all() []entry[T] { return s.after("", 0, every[T]) }

// every keeps every entry.
func every[T any](entry[T]) bool { return true }

// sorted returns the order, which is cached until the next change.
func (s *shelf[T]) sorted() []string {
	if s.order == nil {
		s.order = slices.AppendSeq(make([]string, 0, len(s.items)+len(s.away)), maps.Keys(s.items))
		s.order = slices.AppendSeq(s.order, maps.Keys(s.away))
		slices.Sort(s.order)
		s.order = slices.Compact(s.order)
	}
	return s.order
}
