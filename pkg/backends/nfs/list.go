package nfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// readAtOnce is how many records are read at a time.
const readAtOnce = 16

// position is a place in the order of an enumeration: by share, and then by ID.
type position struct{ where, id string }

// start is where a page begins. Kinds: Busy for a token that is none of this enumeration.
func (e *engine) start(k kind, token string) (position, error) {
	after, err := pagetoken.Parse(token, func(text string) bool {
		_, err := e.parse(k, text)
		return !backends.Is(err, backends.NotFound)
	})
	if err != nil || after == "" {
		return position{}, err
	}
	h, err := e.parse(k, after)
	return position{h.where(), h.id}, err
}

// entry is what an enumeration has found.
type entry struct {
	place place
	*record
}

// enumerate returns at most limit things, all for 0, that want says yes to, on all shares that are known, and the token for
// the rest. Kinds: Busy for a token of another enumeration; Unavailable when a share does not answer: without what is on
// it the list would not be whole.
func (e *engine) enumerate(ctx context.Context, k kind, page backends.Page, want func(*record) bool) (found []entry, next string, err error) {
	after, err := e.start(k, page.Token)
	if err != nil {
		return nil, "", err
	}
	for _, p := range e.known.sorted() {
		if p.key() < after.where || page.Limit > 0 && len(found) > page.Limit {
			continue
		}
		from := ""
		if p.key() == after.where {
			from = after.id
		}
		more := 0
		if page.Limit > 0 {
			more = page.Limit + 1 - len(found) // One more than asked for: so there is a next page.
		}
		on, err := e.enumerateOn(ctx, k, p, from, more, want)
		if err != nil {
			return nil, "", err
		}
		found = append(found, on...)
	}
	found, next = pagetoken.Cut(found, page.Limit, func(e entry) string { return e.Handle })
	return found, next, nil
}

// enumerateOn is enumerate for one share.
func (e *engine) enumerateOn(ctx context.Context, k kind, p place, from string, limit int, want func(*record) bool) ([]entry, error) {
	var result atomic.Pointer[[]entry]
	err := e.pool.With(ctx, p.Address, "enumerating", func(ctx context.Context, s *share.Share) error {
		h, err := s.Home(false)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		ids, err := h.Names(k.folder(), suffix)
		if err != nil {
			return err
		}
		slices.Sort(ids)
		at, there := slices.BinarySearch(ids, from)
		if there {
			at++
		}
		var found []entry
		for chunk := range slices.Chunk(ids[at:], 4*readAtOnce) {
			records, err := readAll(ctx, h, k, chunk)
			if err != nil {
				return err
			}
			for _, r := range records {
				there, err := p.lists(h, r, want)
				if err != nil {
					return err
				}
				if there {
					found = append(found, entry{p, r})
				}
			}
			if limit > 0 && len(found) >= limit {
				break
			}
		}
		result.Store(&found)
		return nil
	})
	if all := result.Load(); err == nil && all != nil {
		return *all, nil
	}
	return nil, err
}

// lists tells whether a record belongs into an enumeration; nil is one that has gone meanwhile.
func (p place) lists(h *share.Home, r *record, want func(*record) bool) (bool, error) {
	if r == nil || !(handle{address: p.Address, share: p.Name}).isOf(r) || !want(r) {
		return false, nil
	}
	return r.shown(h)
}

// isOf tells whether a record was made by way of this address: a share with several is enumerated under each for its own.
func (h handle) isOf(r *record) bool { return strings.HasSuffix(r.Handle, "."+h.where()) }

// readAll reads records, several at a time. What is gone meanwhile is nil.
func readAll(ctx context.Context, h *share.Home, k kind, ids []string) ([]*record, error) {
	records, errs := make([]*record, len(ids)), make([]error, len(ids))
	var readers sync.WaitGroup
	var next atomic.Int64
	for range min(readAtOnce, len(ids)) {
		readers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(ids)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				records[i], errs[i] = read(h, k.folder(), ids[i]+suffix)
				if errors.Is(errs[i], fs.ErrNotExist) {
					records[i], errs[i] = nil, nil
				}
			}
		})
	}
	readers.Wait()
	return records, errors.Join(append(errs, ctx.Err())...)
}

// List returns volumes in a stable order. Kinds: as enumerate.
func (e *controllerSide) List(ctx context.Context, page backends.Page) (volumes []backends.Volume, next string, err error) {
	defer annotate(&err, "list volumes", "")
	found, next, err := e.enumerate(ctx, volumeKind, page, func(*record) bool { return true })
	for _, f := range found {
		volumes = append(volumes, *e.describe(f.record, f.place.Address))
	}
	return volumes, next, err
}

// ListSnapshots returns snapshots, of one volume or of all, in a stable order. Kinds: as enumerate.
func (e *controllerSide) ListSnapshots(ctx context.Context, volume string, page backends.Page) (snapshots []backends.Snapshot, next string, err error) {
	defer annotate(&err, "list snapshots", volume)
	found, next, err := e.enumerate(ctx, snapshotKind, page, func(r *record) bool { return volume == "" || r.SourceVolume == volume })
	for _, f := range found {
		snapshots = append(snapshots, *e.describeSnapshot(f.record))
	}
	return snapshots, next, err
}
