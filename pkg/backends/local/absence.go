package local

import (
	"context"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// IsAbsent reports whether no pool has a volume of this name or is about to get one. Only this process creates volumes
// on this node: it locks the data directory and the pools. The answer is for this node only, so the Spec must allow no
// other place.
func (e *engine) IsAbsent(_ context.Context, spec backends.Spec) bool {
	handle := handleOf(volumePrefix, spec.Name)
	return spec.Topology.IsOnly(e.place) && !e.making.volumes.Running(handle) && e.stock.volumes.isFree(handle) &&
		e.isUnlisted(handle)
}

// IsSnapshotAbsent reports whether no pool has a snapshot of this name or is about to get one, as IsAbsent does for
// volumes.
func (e *engine) IsSnapshotAbsent(_ context.Context, spec backends.SnapshotSpec) bool {
	handle := handleOf(snapshotPrefix, spec.Name)
	return spec.Topology.IsOnly(e.place) && !e.making.snapshots.Running(handle) && e.stock.snapshots.isFree(handle) &&
		e.isUnlisted(handle)
}

// IsGroupAbsent reports whether no pool has a group of this name or is about to get one. The answer is for this node,
// the only place of a group of its volumes.
func (e *engine) IsGroupAbsent(_ context.Context, spec backends.GroupSpec) bool {
	handle := handleOf(groupPrefix, spec.Name)
	return !e.making.groups.Running(handle) && e.stock.groups.isFree(handle) && e.isUnlisted(handle)
}

// isUnlisted reports whether no pool's index has the handle. An index also lists entries that may be in the pool but
// are on no shelf, such as a volume whose last step could be neither made durable nor undone.
func (e *engine) isUnlisted(handle string) bool {
	return !slices.ContainsFunc(e.served(), func(p *pool) bool { return p.index.has(handle) })
}

// isFree reports whether no pool has an item with the handle, and no item is being made under it.
func (s *shelf[T]) isFree(handle string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.items[handle]
	_, making := s.making[handle]
	return !there && !making && s.away[handle] == nil && len(s.doubts) == 0
}
