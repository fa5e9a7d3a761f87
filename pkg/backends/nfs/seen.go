package nfs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// homeID is the identity of a share.
type homeID [6]byte

// seen holds the items that this process last saw on the shares, for enumerations while a share does not answer. These
// items still exist but cannot be reached, and a list without them would say that they are gone. The items of a share
// that may have changed since are not remembered.
type seen struct {
	mu    sync.Mutex
	turns map[homeID]uint64 // count the changes; a change on a share of unknown identity counts for all
	homes map[string]homeID // by the keys of places
	// one maps the keys of places that were shown to be one share with another to the key that represents all of them.
	one   map[string]string
	lists map[string]map[kind]*sightings // by the keys of places that represent themselves
	// failures are the reasons for which a share that answers could not be read completely last, by kind and the keys of
	// places.
	failures map[kind]map[string]error
	// readers limit enumerations, by the keys of places, to one per share at a time, so that many calls take no more
	// memory than one.
	readers map[string]*semaphore.Weighted
}

func newSeen() *seen {
	return &seen{turns: map[homeID]uint64{}, homes: map[string]homeID{}, one: map[string]string{},
		lists:    map[string]map[kind]*sightings{},
		failures: map[kind]map[string]error{volumeKind: {}, snapshotKind: {}, groupKind: {}},
		readers:  map[string]*semaphore.Weighted{}}
}

// reading waits until no other call enumerates the share. Kinds: Unavailable when that takes too long.
func (s *seen) reading(ctx context.Context, p place) (release func(), err error) {
	s.mu.Lock()
	reader := s.readers[p.key()]
	if reader == nil {
		reader = semaphore.NewWeighted(1)
		s.readers[p.key()] = reader
	}
	s.mu.Unlock()
	if err := reader.Acquire(ctx, 1); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "others enumerate the share %s: ask again: %w", p.key(), err)
	}
	return func() { reader.Release(1) }, nil
}

// turn changes with every change on the share with an identity.
func (s *seen) turn(home homeID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turnOf(home)
}

// turnOf is turn. The caller holds the lock.
func (s *seen) turnOf(home homeID) uint64 { return s.turns[home] + s.turns[homeID{}] }

// remember notes all items of a kind on the share at a place, unless the share has changed since the turn.
func (s *seen) remember(k kind, on asked, turn uint64, all *sightings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turnOf(on.home) != turn {
		return
	}
	key := s.standsFor(on.place)
	if s.lists[key] == nil {
		s.lists[key] = map[kind]*sightings{}
	}
	s.lists[key][k] = all
	s.shed()
}

// failed notes the result of the last reading of all items of a kind on the share at a place.
func (s *seen) failed(k kind, p place, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[k][p.key()] = err
}

// failure returns the result of the last reading of all items of a kind on the share at a place: nil after a success.
func (s *seen) failure(k kind, p place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures[k][p.key()]
}

// mostKept is the maximum memory for the items of all shares together, in bytes: enough for 200,000 items.
const mostKept = mostBytes / 2

// shed forgets the largest lists while all together are too large. The caller holds the lock.
func (s *seen) shed() {
	for {
		total, largest, of, most := int64(0), "", kind(""), int64(0)
		for key, lists := range s.lists {
			for k, list := range lists {
				if total += list.bytes; list.bytes > most {
					largest, of, most = key, k, list.bytes
				}
			}
		}
		if total <= mostKept {
			return
		}
		delete(s.lists[largest], of)
	}
}

// forget drops the remembered items of a share that is about to change.
func (s *seen) forget(on *share.Share) {
	h, err := on.Home(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.turns[homeID{}]++
		return
	}
	s.turns[h.Identity()]++
	for key, home := range s.homes {
		if home == h.Identity() {
			delete(s.lists, cmp.Or(s.one[key], key))
		}
	}
}

// recall is enumerateOn for a share that does not answer, or cannot be read. Kinds: Unavailable when nothing is
// remembered.
func (s *seen) recall(k kind, on asked, from string, limit int, want func(*record) bool) (found []entry, err error) {
	s.mu.Lock()
	all := s.lists[s.standsFor(on.place)][k]
	s.mu.Unlock()
	if all == nil {
		return nil, backends.Errorf(backends.Unavailable,
			"what is on the share %s is not known, and a list without it would not be whole: "+
				"bring its server back, or take the share out of the configuration and start the controller anew: %w",
			on.place.key(), on.away)
	}
	return all.after(from, limit, on, want)
}

// identity returns the last known identity of the share at a place; false if it never answered.
func (s *seen) identity(p place) (homeID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	home, ok := s.homes[p.key()]
	return home, ok
}

func (s *seen) identified(p place, home homeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.homes[p.key()]; ok && before != home {
		s.alone(p)
		delete(s.lists, p.key())
	}
	s.homes[p.key()] = home
}

// asked is a share that was asked for its identity.
type asked struct {
	place place
	home  homeID // zero for a share that this process never saw
	away  error  // why it does not answer
	empty bool   // nothing of this driver is on it
}

// distinct returns the known shares, in the order of their identities. Each is listed once whatever its names and
// addresses, as far as that can be determined: a copied identity hides nothing. All shares are asked at once, each with
// a time limit. Kinds: Unavailable when none is known.
func (e *engine) distinct(ctx context.Context) ([]asked, error) {
	places := e.known.sorted()
	if len(places) == 0 {
		return nil, backends.Errorf(backends.Unavailable,
			"no share is known: the configuration (--config) names none, and none was used since the start; "+
				"name the shares of the classes in the configuration, so that what is on them is known from the start")
	}
	all := make([]asked, len(places))
	var asking sync.WaitGroup
	for i, p := range places {
		asking.Go(func() { all[i] = e.ask(ctx, p) })
	}
	asking.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(a asked) bool { return a.empty })
	// The one that answers comes before others with the same identity.
	slices.SortStableFunc(all, func(a, b asked) int {
		if order := bytes.Compare(a.home[:], b.home[:]); order != 0 || (a.away == nil) == (b.away == nil) {
			return order
		}
		if a.away == nil {
			return -1
		}
		return 1
	})
	return e.once(ctx, all), nil
}

// ask asks the share at a place which one it is.
func (e *engine) ask(ctx context.Context, p place) (a asked) {
	a.place = p
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	found, empty := make(chan homeID, 1), atomic.Bool{}
	err := e.pool.With(ctx, p.Address, "asking which share it is", func(_ context.Context, s *share.Share) error {
		h, err := s.Home(false)
		if err == nil {
			err = e.known.agrees(p, h.Identity())
		}
		if errors.Is(err, fs.ErrNotExist) { // From a mount, this error means that the server does not export the share.
			empty.Store(true)
		}
		if err == nil {
			e.seen.identified(p, h.Identity())
			e.known.add(p, h.Identity())
			err = h.Check()
		}
		if err == nil {
			found <- h.Identity()
		}
		return err
	})
	home, before := e.seen.identity(p)
	switch {
	case err == nil:
		a.home = <-found
	case empty.Load() && !before && !e.known.used(p):
		a.empty = true
	default:
		a.home, a.away = home, err
		e.log.WarnContext(ctx, "a share does not answer: what is on it is listed as it was seen last", "share", p.key(),
			"error", failure.OneLine(err))
	}
	return a
}
