package nfs

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// once omits the places that are shown to be one share with another in the list. All are in the order of their
// identities, and of one identity those that answer come first.
//
// An identity is no secret. An operator who copies a share copies it too, and an attacker can copy it to hide the
// contents of another share. So two places that both answer are one share if a file that is written through one is read
// through the other. A place that does not answer is one share with another if that was so when both answered last.
func (e *engine) once(ctx context.Context, all []asked) (shares []asked) {
	for _, a := range all {
		known := a.home != (homeID{}) && slices.ContainsFunc(shares, func(b asked) bool {
			return b.home == a.home && e.same(ctx, b, a)
		})
		if !known {
			shares = append(shares, a)
		}
	}
	return shares
}

// same reports whether a place is one share with another of the same identity, which answers if any does.
func (e *engine) same(ctx context.Context, a, b asked) bool {
	if b.away != nil {
		return e.seen.areOne(a.place, b.place)
	}
	one, err := e.shown(ctx, a.place, b.place)
	if err != nil {
		one, err = e.shown(ctx, b.place, a.place) // One of them may be read-only.
	}
	if one {
		e.seen.join(a.place, b.place)
		return true
	}
	if err != nil && e.seen.areOne(a.place, b.place) {
		return true // The failure of the check is no sign that they are two shares now.
	}
	e.log.WarnContext(ctx, "two shares have one identity, and do not show each other's files: both are listed. Is one a "+
		"copy of the other? Take the copy out of the configuration, and keep others from writing to .stowage",
		"share", a.place.key(), "other", b.place.key(), "error", err)
	e.seen.part(a.place, b.place)
	return false
}

// shown writes a mark through one place and looks for it through another.
func (e *engine) shown(ctx context.Context, a, b place) (one bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	on := func(p place, do func(h *share.Home) error) error {
		return e.pool.With(ctx, p.Address, "telling two shares apart", func(_ context.Context, s *share.Share) error {
			h, err := s.Home(false)
			if err != nil {
				return err
			}
			return do(h)
		})
	}
	var mark atomic.Pointer[share.Mark] // A call that was given up may still write to it.
	var found atomic.Bool
	err = on(a, func(h *share.Home) error {
		m, err := h.Mark()
		mark.Store(&m)
		return err
	})
	if err != nil {
		return false, err
	}
	m := *mark.Load()
	err = on(b, func(h *share.Home) error {
		there, err := h.Bears(m)
		found.Store(there)
		return err
	})
	// The janitor removes a mark that cannot be removed now.
	if failed := on(a, func(h *share.Home) error { return h.Unmark(m) }); failed != nil {
		e.log.DebugContext(ctx, "a mark was left", "share", a.key(), "error", failed)
	}
	return err == nil && found.Load(), err
}

// standsFor returns the key of the remembered contents of the share at a place. The caller holds the lock.
func (s *seen) standsFor(p place) string { return cmp.Or(s.one[p.key()], p.key()) }

// areOne reports whether two places were shown to be one share.
func (s *seen) areOne(a, b place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standsFor(a) == s.standsFor(b)
}

// join notes that two places are one share.
func (s *seen) join(a, b place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.standsFor(a)
	if key == s.standsFor(b) {
		return
	}
	s.alone(b)
	delete(s.lists, b.key())
	s.one[b.key()] = key
}

// part notes that two places are not shown to be one share.
func (s *seen) part(a, b place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standsFor(a) == s.standsFor(b) {
		s.alone(b)
	}
}

// alone separates a place from all others, and forgets the contents that were seen there, or through the others. The
// caller holds the lock.
func (s *seen) alone(p place) {
	for key, of := range s.one {
		if of != p.key() && key != p.key() {
			continue
		}
		delete(s.one, key)
		delete(s.lists, of)
	}
}
