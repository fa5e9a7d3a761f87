package nfs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// readAtOnce is how many records are read at a time.
const readAtOnce = 16

// position is a place in the order of an enumeration: by the identity of the share, and then by ID. Where several
// shares have one identity things of one ID are in the order of their handles.
type position struct {
	home   homeID
	id     string
	handle string
}

// start is where a page begins. Kinds: Busy for a token that is none of this enumeration.
func start(k kind, token string) (position, error) {
	after, err := pagetoken.Parse(token, func(text string) bool { _, _, _, ok := decodeHandle(k, text); return ok })
	if err != nil || after == "" {
		return position{}, err
	}
	h, _, _, _ := decodeHandle(k, after)
	return position{h.home, h.id, after}, nil
}

// entry is what an enumeration has found.
type entry struct {
	place place
	*record
	away error // why the share cannot be asked now
	// damage is why it cannot be used although the share answers. Of a record that cannot be read the kind, the ID and the
	// handle are known.
	damage error
}

// enumerate returns at most limit things, all for 0, that want says yes to, on all shares that are known, and the token
// for the rest. What is on a share that does not answer, or cannot be read, is as it was seen last.
//
// Kinds: Busy for a token of another enumeration; Unavailable when no share is known, or when there is such a one of
// which nothing was seen yet: without what is on it the list would say that it is gone.
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
			more = page.Limit + 1 - len(found) // One more than asked for: so there is a next page.
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

// enumerateOn is enumerate for one share. The page with which it begins reads all of the share, so that all is
// remembered.
func (e *engine) enumerateOn(ctx context.Context, k kind, s asked, from string, limit int,
	want func(*record) bool) ([]entry, error) {
	if s.away == nil && from != "" {
		s.away = e.seen.failure(k, s.place) // What the first page could not read in whole no later one reads.
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
	if err != nil && ctx.Err() != nil { // The caller's time is over, which says nothing about the share.
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

// readAll reads records, several at a time. What is not there for others has none.
func (l survey) readAll(ctx context.Context, ids []string) ([]entry, error) {
	found := make([]entry, len(ids))
	readers, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(readAtOnce, len(ids)) {
		readers.Go(func() (err error) {
			for i := next.Add(1) - 1; i < int64(len(ids)) && err == nil && ctx.Err() == nil; i = next.Add(1) - 1 {
				found[i], err = l.listed(ids[i])
			}
			if err == nil {
				err = ctx.Err()
			}
			return err
		})
	}
	return found, readers.Wait()
}

// listed is what an enumeration has of an ID. A record that is damaged keeps no other from being listed.
func (l survey) listed(id string) (entry, error) {
	r, err := read(l.home, l.kind.folder(), id+suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entry{}, nil
	case backends.Is(err, backends.Unusable):
		return l.damaged(id, r, err)
	case err != nil:
		return entry{}, err
	}
	there, err := r.shown(l.shown, inPlace) // Many snapshots are of one group, whose record is not kept.
	if there || backends.Is(err, backends.Unusable) {
		return entry{place: l.place, record: r, damage: err}, nil
	}
	return entry{}, err
}

// damaged is what an enumeration has of an ID whose record cannot be used: its handle. Of a snapshot it must be known
// of which volume of this share it is, and that no group decides whether it is there.
func (l survey) damaged(id string, r *record, why error) (entry, error) {
	text, err := handle{kind: l.kind, address: l.place.Address, share: l.place.Name, home: l.home.Identity(),
		id: id}.encode()
	if err != nil || l.kind == volumeKind {
		return entry{place: l.place, record: &record{Kind: l.kind, ID: id, Handle: text}, damage: why}, err
	}
	if l.kind != snapshotKind || r == nil || r.ID != id || r.Kind != l.kind || r.Group != nil {
		return entry{}, nil
	}
	if of, _, _, ok := decodeHandle(volumeKind, r.SourceVolume); !ok || of.home != l.home.Identity() {
		return entry{}, nil
	}
	known := *r
	known.Handle = text
	return entry{place: l.place, record: &known, damage: why}, nil
}

// List returns volumes in a stable order. Kinds: as enumerate.
func (e *controllerSide) List(ctx context.Context,
	page backends.Page) (volumes []backends.Volume, next string, err error) {
	defer annotate(&err, "list volumes", "")
	found, next, err := e.enumerate(ctx, volumeKind, page, func(*record) bool { return true })
	for _, f := range found {
		volumes = append(volumes, *e.describeEntry(f))
	}
	return volumes, next, err
}

// describeEntry is a volume as the contract has it: of one whose record is damaged the handle and the place.
func (e *engine) describeEntry(f entry) *backends.Volume {
	if f.damage != nil {
		return &backends.Volume{Handle: f.Handle, Topology: e.places.of(f.record)}
	}
	return e.describe(f.record, f.place.Address)
}

// ListSnapshots returns snapshots, of one volume or of all, in a stable order. Kinds: as enumerate.
func (e *controllerSide) ListSnapshots(ctx context.Context, volume string,
	page backends.Page) (snapshots []backends.Snapshot, next string, err error) {
	defer annotate(&err, "list snapshots", volume)
	found, next, err := e.enumerate(ctx, snapshotKind, page,
		func(r *record) bool { return volume == "" || r.SourceVolume == volume })
	for _, f := range found {
		s := e.describeSnapshot(f.record)
		s.Ready = f.damage == nil
		snapshots = append(snapshots, *s)
	}
	return snapshots, next, err
}
