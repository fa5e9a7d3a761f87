package local

import (
	"context"
	"maps"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// List returns volumes in the order of their handles. Kinds: Busy for a token that is not List's.
func (e *engine) List(ctx context.Context, page backends.Page) (volumes []backends.Volume, next string, err error) {
	defer annotate(&err, "list volumes", "")
	after, err := startOf(ctx, volumePrefix, page)
	if err != nil {
		return nil, "", err
	}
	entries := e.stock.volumes.after(after, oneMore(page.Limit), every)
	entries, next = pagetoken.Cut(entries, page.Limit, entry[*volume].key)
	for _, entry := range entries {
		volumes = append(volumes, *e.describeEntry(entry))
	}
	return volumes, next, nil
}

// describeEntry returns the volume for the contract. One that was never read is as its pool's index describes it.
// Without a description it has only its handle and topology.
func (e *engine) describeEntry(v entry[*volume]) *backends.Volume {
	if v.item != nil {
		return e.describe(v.item)
	}
	if record := indexOf(e.dataDir, v.away.pool).volume(v.handle); record != nil {
		return e.describeRecord(record)
	}
	return &backends.Volume{Handle: v.handle, Topology: []backends.Topology{maps.Clone(e.place)}}
}

// describeSnapshotEntry does the same for a snapshot. Kinds: Unavailable without a description.
func (e *engine) describeSnapshotEntry(s entry[*snapshot]) (*backends.Snapshot, error) {
	isReady := s.away == nil
	if s.item != nil {
		return e.describeSnapshotRecord(s.item.record, s.item.group, isReady), nil
	}
	described := indexOf(e.dataDir, s.away.pool).snapshot(s.handle)
	if described == nil {
		return nil, backends.Errorf(backends.Unavailable,
			"the snapshot %s in pool %q cannot be used now, and nothing else is known of it: %w", s.handle, s.away.pool,
			s.away.why)
	}
	return e.describeSnapshotRecord(&described.snapshotRecord, described.Group, isReady), nil
}

// ListSnapshots returns snapshots, of one volume or of all, in the order of their handles. A page may have fewer
// entries than its limit. Kinds: as List; Unavailable when nothing is known of a snapshot but its handle.
func (e *engine) ListSnapshots(
	ctx context.Context, volume string, page backends.Page,
) (snapshots []backends.Snapshot, next string, err error) {
	defer annotate(&err, "list snapshots", volume)
	after, err := startOf(ctx, snapshotPrefix, page)
	if err != nil {
		return nil, "", err
	}
	entries := e.stock.snapshots.after(after, oneMore(page.Limit), func(s entry[*snapshot]) bool {
		// That of a snapshot that was never read is looked up below, without the shelf's lock.
		return volume == "" || s.item == nil || s.item.record.Volume == volume
	})
	entries, next = pagetoken.Cut(entries, page.Limit, entry[*snapshot].key)
	for _, entry := range entries {
		s, err := e.describeSnapshotEntry(entry)
		if err != nil {
			return nil, "", err
		}
		if volume == "" || s.Volume == volume {
			snapshots = append(snapshots, *s)
		}
	}
	return snapshots, next, nil
}

// oneMore is how many entries to get for a page: one more shows that there is a next page. 0 means all.
func oneMore(limit int) int {
	if limit == 0 {
		return 0
	}
	return limit + 1
}

// startOf returns the handle after which a page begins.
func startOf(ctx context.Context, prefix string, page backends.Page) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return pagetoken.Parse(page.Token, func(handle string) bool { return isHandle(prefix, handle) })
}
