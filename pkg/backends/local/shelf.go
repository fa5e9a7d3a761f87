package local

import (
	"maps"
	"slices"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// shelf is the index of all volumes, snapshots or groups by handle. It is the only way from a handle that
// came from outside to anything on disk. Its mutex is held for a look or a note, never for I/O.
type shelf[T any] struct {
	what string // for messages

	mu     sync.Mutex
	items  map[string]T
	making map[string]struct{} // handles that are reserved
	away   map[string]*away    // what is there and cannot be used; it hides an item of the same handle
	doubts map[string]*away    // pools, by name, of which it is not known what is in them
	order  []string            // the handles of items and away, sorted; nil after a change
}

func newShelf[T any](what string) *shelf[T] {
	return &shelf[T]{
		what: what, items: map[string]T{}, making: map[string]struct{}{}, away: map[string]*away{},
		doubts: map[string]*away{},
	}
}

// reserve takes the handle for something that is to be made; settle or abandon must follow. Kinds: Unusable when
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

// settle puts what was made under the handle.
func (s *shelf[T]) settle(handle string, item T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, handle)
	s.items[handle] = item
	s.order = nil
}

// abandon gives a reserved handle back.
func (s *shelf[T]) abandon(handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, handle)
}

// remove takes what is deleted out.
func (s *shelf[T]) remove(handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, handle)
	s.order = nil
}

// get looks for a handle. Kinds: Unusable; NotFound.
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

// toDelete looks for what is to be deleted. It may be asked for while it is made, by a caller that knows how handles
// follow from names: without it that caller would be told that it is gone, and it would come. Kinds: Busy while it is
// being made; those of get.
func (s *shelf[T]) toDelete(handle string) (T, error) {
	if s.isMade(handle) {
		var none T
		return none, backends.Errorf(backends.Busy, "the %s is being made: ask again", s.what)
	}
	return s.get(handle)
}

// isMade reports whether something is being made under the handle.
func (s *shelf[T]) isMade(handle string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, making := s.making[handle]
	return making
}

// entry is an item with its handle.
type entry[T any] struct {
	handle string
	item   T     // the zero value for what is away and was never read
	away   *away // why it cannot be used now
}

func (e entry[T]) key() string { return e.handle }

// after returns what has a handle that sorts after the one given, in the order of the handles: at most limit, all for
// 0, of what keep says yes to.
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

// all returns everything, in the order of the handles.
func (s *shelf[T]) all() []entry[T] { return s.after("", 0, every[T]) }

// every keeps every entry.
func every[T any](entry[T]) bool { return true }

// sorted returns the order, which lasts until something changes.
func (s *shelf[T]) sorted() []string {
	if s.order == nil {
		s.order = slices.AppendSeq(make([]string, 0, len(s.items)+len(s.away)), maps.Keys(s.items))
		s.order = slices.AppendSeq(s.order, maps.Keys(s.away))
		slices.Sort(s.order)
		s.order = slices.Compact(s.order)
	}
	return s.order
}
