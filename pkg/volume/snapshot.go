package volume

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// CreateSnapshot takes a snapshot, or finds the one that an earlier call took under the name. Kinds: as
// backends.Snapshotter; Exists when the name is taken by a snapshot of another volume; Unsupported. A failure may come
// with a proof: see IsAbsent.
func (s *Service) CreateSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	made, err := s.createSnapshot(ctx, spec)
	return made, s.provenSnapshot(ctx, spec, err)
}

func (s *Service) createSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	snapshotter := s.features.Snapshot
	if snapshotter == nil {
		return nil, unsupported("take snapshots")
	}
	made, err := creating(ctx, s, "create-snapshot", spec.Name, func(ctx context.Context) (*backends.Snapshot, error) {
		return snapshotter.CreateSnapshot(ctx, spec)
	})
	if !backends.Is(err, backends.Exists) && !backends.Is(err, backends.Denied) {
		return made, err
	}
	found, looked := observed(ctx, s, "find-snapshot", spec.Name, func(ctx context.Context) (*backends.Snapshot, error) {
		return snapshotter.FindSnapshot(ctx, spec)
	})
	switch {
	case backends.Is(err, backends.Denied):
		return nil, doubted(err, looked)
	case backends.Is(looked, backends.NotFound):
		return nil, gone("snapshot", spec.Name)
	case looked != nil:
		return nil, doubted(looked, looked)
	}
	return found, sameSnapshot(found, spec)
}

// GetSnapshot returns a snapshot. Kinds: NotFound; Unsupported.
func (s *Service) GetSnapshot(ctx context.Context, handle string) (*backends.Snapshot, error) {
	if s.features.Snapshot == nil {
		return nil, unsupported("take snapshots")
	}
	return observed(ctx, s, "get-snapshot", handle, func(ctx context.Context) (*backends.Snapshot, error) {
		return s.features.Snapshot.GetSnapshot(ctx, handle)
	})
}

// DeleteSnapshot removes a snapshot; a missing snapshot counts as deleted. Kinds: InUse; Invalid for a member of a
// group, which is only deleted with its group; Unsupported.
func (s *Service) DeleteSnapshot(ctx context.Context, handle string) error {
	if s.features.Snapshot == nil {
		return unsupported("take snapshots")
	}
	err := s.run(ctx, "delete-snapshot", handle,
		func(ctx context.Context) error { return s.features.Snapshot.DeleteSnapshot(ctx, handle) })
	if backends.Is(err, backends.InUse) {
		return s.ofGroup(ctx, handle, err)
	}
	return unlessGone(err)
}

// ofGroup returns the failure to delete a snapshot as Invalid, if it belongs to a group.
func (s *Service) ofGroup(ctx context.Context, handle string, why error) error {
	found, err := s.GetSnapshot(ctx, handle)
	if err != nil || found.Group == "" {
		return why
	}
	return backends.Errorf(backends.Invalid, "%w", why)
}

// CreateGroup takes snapshots of several volumes at one instant, or finds those that an earlier call took under the
// name. Kinds: as backends.GroupSnapshotter; Exists when the name is taken by a group of other volumes; Unsupported. A
// failure may come with a proof: see IsAbsent.
func (s *Service) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	made, err := s.createGroup(ctx, spec)
	return made, s.provenGroup(ctx, spec, err)
}

func (s *Service) createGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	grouper := s.features.Group
	if grouper == nil {
		return nil, unsupported("take group snapshots")
	}
	made, err := creating(ctx, s, "create-group", spec.Name, func(ctx context.Context) (*backends.Group, error) {
		return grouper.CreateGroup(ctx, spec)
	})
	if !backends.Is(err, backends.Exists) && !backends.Is(err, backends.Denied) {
		return made, err
	}
	found, looked := observed(ctx, s, "find-group", spec.Name, func(ctx context.Context) (*backends.Group, error) {
		return grouper.FindGroup(ctx, spec.Name)
	})
	switch {
	case backends.Is(err, backends.Denied):
		return nil, doubted(err, looked)
	case backends.Is(looked, backends.NotFound):
		return nil, gone("group snapshot", spec.Name)
	case looked != nil:
		return nil, doubted(looked, looked)
	}
	return found, sameGroup(found, spec)
}

// GetGroup returns a group, which must consist of the named snapshots. Kinds: NotFound; Invalid when the names do not
// match; Unsupported.
func (s *Service) GetGroup(ctx context.Context, handle string, snapshots []string) (*backends.Group, error) {
	if s.features.Group == nil {
		return nil, unsupported("take group snapshots")
	}
	found, err := observed(ctx, s, "get-group", handle, func(ctx context.Context) (*backends.Group, error) {
		return s.features.Group.GetGroup(ctx, handle)
	})
	if err != nil {
		return nil, err
	}
	return found, members(found, snapshots)
}

// DeleteGroup removes a group and its snapshots; a missing group counts as deleted. Kinds: Invalid when the named
// snapshots are not the group's; Unsupported.
func (s *Service) DeleteGroup(ctx context.Context, handle string, snapshots []string) error {
	// A group that does not exist, or cannot be read yet, may be under creation.
	_, err := s.GetGroup(ctx, handle, snapshots)
	if err != nil && !backends.Is(err, backends.NotFound) && !backends.Is(err, backends.Busy) &&
		!backends.Is(err, backends.Unusable) {
		return err
	}
	err = s.run(ctx, "delete-group", handle,
		func(ctx context.Context) error { return s.features.Group.DeleteGroup(ctx, handle) })
	return unlessGone(err)
}

// members fails unless the handles are exactly the group's snapshots, as CSI asks of a plugin that can tell. Kinds:
// Invalid.
func members(group *backends.Group, handles []string) error {
	if len(handles) == 0 {
		return backends.Errorf(backends.Invalid, "snapshot_ids is empty: name all snapshots of group snapshot %q",
			group.Handle)
	}
	have := make(map[string]bool, len(group.Snapshots))
	for _, snapshot := range group.Snapshots {
		have[snapshot.Handle] = true
	}
	for _, handle := range handles {
		if !have[handle] {
			return backends.Errorf(backends.Invalid, "snapshot %q does not belong to group snapshot %q", handle, group.Handle)
		}
		delete(have, handle)
	}
	for handle := range have {
		return backends.Errorf(backends.Invalid, "snapshot %q of group snapshot %q is not in the list", handle, group.Handle)
	}
	return nil
}
