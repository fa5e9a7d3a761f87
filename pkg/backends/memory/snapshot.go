package memory

import (
	"context"
	"maps"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

type snapshot struct {
	hold
	handle, volume string
	name           string // empty in a group
	group          string // the group's handle
	size           int64  // bytes
	raw            bool   // created as a raw device
	createdAt      time.Time
}

// CreateSnapshot copies a volume that is not mounted.
func (b *backend) CreateSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	s, err := b.planSnapshot(ctx, spec)
	if err != nil {
		return nil, err
	}
	err = b.files.copy(ctx, s)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.finishSnapshot(s, err); err != nil {
		return nil, err
	}
	return b.describeSnapshot(s), nil
}

func (b *backend) planSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*snapshot, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if err := b.snapshots.free(spec.Name); err != nil {
		return nil, err
	}
	if !spec.Topology.Allows(b.zone) {
		return nil, backends.Errorf(backends.Exhausted, "no place in %v: all storage is in %v", spec.Topology.Requisite,
			b.zone)
	}
	v, err := b.still(spec.Volume)
	if err != nil {
		return nil, err
	}
	s, err := b.beginSnapshot(v, "")
	if err != nil {
		return nil, err
	}
	s.name = spec.Name
	b.snapshots.names[s.name] = s.handle
	return s, nil
}

// beginSnapshot takes the room for a copy of the volume and keeps the volume from changing.
func (b *backend) beginSnapshot(v *volume, group string) (*snapshot, error) {
	if v.size > b.left() {
		return nil, backends.Errorf(backends.Exhausted, "no room for a snapshot of %d bytes: %d are left", v.size, b.left())
	}
	b.used += v.size
	v.readers++
	now := time.Now().UTC().Round(0)
	return &snapshot{handle: b.snapshots.newHandle(), volume: v.handle, group: group, size: v.size, raw: v.raw,
		createdAt: now}, nil
}

// finishSnapshot records the snapshot, or undoes beginSnapshot if err is not nil. It returns err.
func (b *backend) finishSnapshot(s *snapshot, err error) error {
	b.volumes.rows[s.volume].value.readers--
	if err != nil {
		b.forgetSnapshot(s)
		return err
	}
	b.snapshots.add(s.handle, s)
	return nil
}

func (b *backend) forgetSnapshot(s *snapshot) {
	b.snapshots.remove(s.handle, s.name)
	b.used -= s.size
}

// FindSnapshot returns the snapshot of that name.
func (b *backend) FindSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	s, err := b.snapshots.find(spec.Name)
	if err != nil {
		return nil, err
	}
	return b.describeSnapshot(s), nil
}

// GetSnapshot returns the snapshot with the handle.
func (b *backend) GetSnapshot(ctx context.Context, handle string) (*backends.Snapshot, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	s, err := b.snapshots.get(handle)
	if err != nil {
		return nil, err
	}
	return b.describeSnapshot(s), nil
}

// DeleteSnapshot removes a snapshot that is in no group.
func (b *backend) DeleteSnapshot(ctx context.Context, handle string) error {
	s, err := b.beginDeleteSnapshot(ctx, handle)
	if err != nil {
		return err
	}
	err = b.files.remove(s.handle)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		s.removing = false
		return err
	}
	b.forgetSnapshot(s)
	return nil
}

func (b *backend) beginDeleteSnapshot(ctx context.Context, handle string) (*snapshot, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	s, err := b.snapshots.get(handle)
	if err != nil {
		return nil, err
	}
	if s.group != "" {
		return nil, backends.Errorf(backends.InUse, "snapshot %q belongs to the group %q: delete the group", handle, s.group)
	}
	return s, s.beginRemoval(handle)
}

// Restore creates a volume with the contents of a snapshot.
func (b *backend) Restore(ctx context.Context, spec backends.Spec, snapshot string) (*backends.Volume, error) {
	return b.create(ctx, spec, func() (origin, error) { return b.snapshotOrigin(snapshot) })
}

func (b *backend) describeSnapshot(s *snapshot) *backends.Snapshot {
	return &backends.Snapshot{
		Handle:    s.handle,
		Name:      s.name,
		Volume:    s.volume,
		Group:     s.group,
		SizeBytes: s.size,
		CreatedAt: s.createdAt,
		Ready:     true,
		Topology:  []backends.Topology{maps.Clone(b.zone)},
	}
}
