package local

import (
	"context"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// IsAbsent reports whether no pool has a volume of the name, nor gets it. Nothing but this process makes volumes on
// this node: the data directory and the pools are locked. It speaks for this node only, so that the Spec must allow no
// other place.
func (e *engine) IsAbsent(_ context.Context, spec backends.Spec) bool {
	handle := handleOf(volumePrefix, spec.Name)
	return spec.Topology.IsOnly(e.place) && !e.making.volumes.Running(handle) && e.stock.volumes.isFree(handle) &&
		e.isUnlisted(handle)
}

// IsSnapshotAbsent reports whether no pool has a snapshot of the name, nor gets it, as IsAbsent does of volumes.
func (e *engine) IsSnapshotAbsent(_ context.Context, spec backends.SnapshotSpec) bool {
	handle := handleOf(snapshotPrefix, spec.Name)
	return spec.Topology.IsOnly(e.place) && !e.making.snapshots.Running(handle) && e.stock.snapshots.isFree(handle) &&
		e.isUnlisted(handle)
}

// IsGroupAbsent reports whether no pool has a group of the name, nor gets it. It speaks for this node, where a group of
// the node's volumes must be.
func (e *engine) IsGroupAbsent(_ context.Context, spec backends.GroupSpec) bool {
	handle := handleOf(groupPrefix, spec.Name)
	return !e.making.groups.Running(handle) && e.stock.groups.isFree(handle) && e.isUnlisted(handle)
}

// isUnlisted reports whether no pool's index has the handle. An index also has what may be in its pool and is on no
// shelf, such as a volume whose last step could neither be made durable nor be taken back.
func (e *engine) isUnlisted(handle string) bool {
	return !slices.ContainsFunc(e.served(), func(p *pool) bool { return p.index.has(handle) })
}

// isFree reports whether nothing has the handle, in any pool, and nothing is being made under it.
func (s *shelf[T]) isFree(handle string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.items[handle]
	_, making := s.making[handle]
	return !there && !making && s.away[handle] == nil && len(s.doubts) == 0
}
