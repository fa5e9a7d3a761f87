package nfs

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// position is a place in the order of an enumeration: by the identity of the share, and then by ID. If several shares
// have one identity, items of one ID are in the order of their handles.
type position struct {
	home   homeID
	id     string
	handle string
}

// start returns the position where a page begins. Kinds: Busy for a token that is none of this enumeration.
func start(k kind, token string) (position, error) {
	after, err := pagetoken.Parse(token, func(text string) bool { _, _, _, ok := decodeHandle(k, text); return ok })
	if err != nil || after == "" {
		return position{}, err
	}
	h, _, _, _ := decodeHandle(k, after)
	return position{h.home, h.id, after}, nil
}

// entry is an item of an enumeration.
type entry struct {
	place place
	*record
	away error // why the share does not answer now
	// damage is why the item cannot be used although the share answers. If its record cannot be read, the kind, the ID and
	// the handle are known.
	damage error
}

// enumerate returns at most limit items that want accepts, all for 0, on all known shares, and the token for the rest.
// Items on a share that does not answer, or cannot be read, are as they were last seen.
//
// Kinds: Busy for a token of another enumeration; Unavailable when no share is known, or when there is such a share of
// which nothing was seen yet: without its items the list would say that they are gone.
func (e *engine) enumerate(ctx context.Context, k kind, page backends.Page,
	want func(*record) bool) (found []entry, next string, err error) {
	after, err := start(k, page.Token)
	if err != nil {
		return nil, "", err
	}
	shares, err := e.distinct(ctx)
	if err != nil {
		return nil, "", err
	}
	for twins := range byIdentity(shares) {
		order := bytes.Compare(twins[0].home[:], after.home[:])
		if order < 0 && twins[0].home != (homeID{}) || page.Limit > 0 && len(found) > page.Limit {
			continue
		}
		from := position{}
		if order == 0 {
			from = after
		}
		more := 0
		if page.Limit > 0 {
			more = page.Limit + 1 - len(found) // One more than requested shows that there is a next page.
		}
		on, err := e.enumerateTwins(ctx, k, twins, from, more, want)
		if err != nil {
			return nil, "", err
		}
		found = append(found, on...)
	}
	found, next = pagetoken.Cut(found, page.Limit, func(e entry) string { return e.Handle })
	return found, next, nil
}

// enumerateOn is enumerate for one share. The first page reads the whole share, so that all items are remembered.
func (e *engine) enumerateOn(ctx context.Context, k kind, s asked, from string, limit int,
	want func(*record) bool) ([]entry, error) {
	if s.away == nil && from != "" {
		s.away = e.seen.failure(k, s.place) // If the first page could not read the whole share, no later page reads it.
	}
	if s.away != nil {
		return e.seen.recall(k, s, from, limit, want)
	}
	var result atomic.Pointer[[]entry]
	err := e.pool.With(ctx, s.place.Address, "enumerating", func(ctx context.Context, on *share.Share) error {
		h, err := on.Home(false)
		if err != nil {
			return err
		}
		if h.Identity() != s.home {
			return backends.Errorf(backends.Unavailable, "the share %s has just become another one: ask again", s.place.key())
		}
		release, err := e.seen.reading(ctx, s.place)
		if err != nil {
			return err
		}
		defer release()
		l := survey{home: h.Within(share.NewBudget(e.budget)), shown: h, kind: k, place: s.place, from: from, limit: limit,
			want: want}
		turn := e.seen.turn(s.home)
		if from == "" {
			l.all = &sightings{}
		}
		found, err := l.entries(ctx)
		if err == nil && l.all != nil {
			e.seen.remember(k, s, turn, l.all)
		}
		result.Store(&found)
		return flooded(err, s.place, k)
	})
	if err != nil && ctx.Err() != nil { // The caller's deadline has passed, which says nothing about the share.
		return nil, err
	}
	if from == "" {
		e.seen.failed(k, s.place, err)
	}
	if err != nil {
		e.log.WarnContext(ctx, "a share cannot be read: what is on it is listed as it was seen last", "share", s.place.key(),
			"error", failure.OneLine(err))
		s.away = err
		return e.seen.recall(k, s, from, limit, want)
	}
	return *result.Load(), nil
}
