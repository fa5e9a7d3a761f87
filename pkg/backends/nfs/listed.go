package nfs

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// readAtOnce is the number of records that are read at a time.
const readAtOnce = 16

// readAll reads records, several at a time. The entry of an item that does not exist has no record.
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

// listed returns the entry of an ID in an enumeration. A damaged record does not prevent the listing of others.
func (l survey) listed(id string) (entry, error) {
	r, err := read(l.home, l.kind.folder(), id+suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entry{}, hasFolder(l.home, l.kind.folder()) // Otherwise all that were listed would be gone.
	case backends.Is(err, backends.Unusable):
		return l.damaged(id, r, err)
	case err != nil:
		return entry{}, err
	}
	there, err := r.shown(l.shown, inPlace) // Many snapshots may be of one group, whose record is not kept.
	if there || backends.Is(err, backends.Unusable) {
		return entry{place: l.place, record: r, damage: err}, nil
	}
	return entry{}, err
}

// damaged returns the entry of an ID whose record cannot be used: its handle. A snapshot is listed only if its volume
// is known to be on this share, and if its existence does not depend on a group.
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
