package localvolume

import (
	"context"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// List returns the volumes in the order of their handles, including those that are being created or deleted.
func (m *Master) List(ctx context.Context, page backends.Page) (volumes []backends.Volume, next string, err error) {
	return paged(page, m.volumes.isHandle, func(shard string) (found []entry[backends.Volume], err error) {
		all, err := m.volumes.in(ctx, shard)
		for _, o := range all {
			if !isOver(o) {
				found = append(found, entry[backends.Volume]{o.Name, func() *backends.Volume { return m.describe(o) }})
			}
		}
		return found, err
	})
}

// ListSnapshots returns the snapshots of one volume or of all in the order of their handles, including those that are
// being deleted and the members of groups.
func (m *Master) ListSnapshots(ctx context.Context, volume string, page backends.Page) (
	snapshots []backends.Snapshot, next string, err error) {
	return paged(page, m.snapshots.isHandle, func(shard string) (found []entry[backends.Snapshot], err error) {
		all, err := m.snapshots.in(ctx, shard)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if (volume == "" || o.Spec.Volume == volume) && !isOver(o) && m.snapshots.isMade(o) {
				found = append(found, entry[backends.Snapshot]{o.Name,
					func() *backends.Snapshot { return m.describeSnapshot(o) }})
			}
		}
		members, err := m.membersIn(ctx, shard, volume)
		return append(found, members...), err
	})
}

// membersIn returns the snapshots of a shard that are members of groups, of one volume or of all.
func (m *Master) membersIn(ctx context.Context, shard, volume string) (found []entry[backends.Snapshot], err error) {
	groups, err := m.groups.in(ctx, shard)
	for _, o := range groups {
		if isOver(o) || !isGroupMade(o) {
			continue
		}
		for i, member := range o.Spec.Members {
			if shardOf(member.Snapshot) == shard && (volume == "" || member.Volume == volume) {
				found = append(found, entry[backends.Snapshot]{member.Snapshot,
					func() *backends.Snapshot { return m.describeMember(o, i) }})
			}
		}
	}
	return found, err
}

// entry is a volume or a snapshot of an enumeration. Only those that a page shows are described.
type entry[T any] struct {
	handle   string
	describe func() *T
}

func (e entry[T]) key() string { return e.handle }

// paged returns a page of entries in the order of their handles. It reads only the shards that the page needs; in
// returns the entries of a shard in any order.
func paged[T any](page backends.Page, isHandle func(string) bool, in func(shard string) ([]entry[T], error)) (
	shown []T, next string, err error) {
	after, err := pagetoken.Parse(page.Token, isHandle)
	if err != nil {
		return nil, "", err
	}
	var found []entry[T]
	for shard := range shardsFrom(after) {
		if page.Limit > 0 && len(found) > page.Limit { // One more than the page shows that there is a next page.
			break
		}
		some, err := in(shard)
		if err != nil {
			return nil, "", err
		}
		some = slices.DeleteFunc(some, func(e entry[T]) bool { return e.handle <= after || !isHandle(e.handle) })
		slices.SortFunc(some, func(a, b entry[T]) int { return strings.Compare(a.handle, b.handle) })
		found = append(found, some...)
	}
	found, next = pagetoken.Cut(found, page.Limit, entry[T].key)
	for _, e := range found {
		shown = append(shown, *e.describe())
	}
	return shown, next, nil
}
