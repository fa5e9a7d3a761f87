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

// describeEntry returns the volume for the contract; one that was never read has only its handle and topology.
func (e *engine) describeEntry(v entry[*volume]) *backends.Volume {
	if v.item == nil {
		return &backends.Volume{Handle: v.handle, Topology: []backends.Topology{maps.Clone(e.place)}}
	}
	return e.describe(v.item)
}

// ListSnapshots returns snapshots, of one volume or of all, in the order of their handles. Kinds: as List.
func (e *engine) ListSnapshots(
	ctx context.Context, volume string, page backends.Page,
) (snapshots []backends.Snapshot, next string, err error) {
	defer annotate(&err, "list snapshots", volume)
	after, err := startOf(ctx, snapshotPrefix, page)
	if err != nil {
		return nil, "", err
	}
	entries := e.stock.snapshots.after(after, oneMore(page.Limit), func(s entry[*snapshot]) bool {
		// The volume of a snapshot that was never read is unknown.
		return s.item != nil && (volume == "" || s.item.record.Volume == volume)
	})
	entries, next = pagetoken.Cut(entries, page.Limit, entry[*snapshot].key)
	for _, entry := range entries {
		snapshots = append(snapshots, *e.describeSnapshot(entry.item))
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
