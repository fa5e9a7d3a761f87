package localvolume

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// describe is the volume as the contract has it.
func (m *Master) describe(o *v1alpha1.LocalVolume) *backends.Volume {
	return &backends.Volume{
		Handle: o.Name, Name: o.Spec.VolumeName, Fingerprint: o.Spec.Fingerprint, Source: contentOf(o.Spec.Source),
		Access:   m.Access(o.Spec.PoolType).OfRaw(len(o.Spec.Access.Mounts) == 0),
		Topology: []backends.Topology{m.place(o.Spec.Node)}, Settings: o.Spec.Settings,
		CapacityBytes: sizeOf(o),
	}
}

func contentOf(s *v1alpha1.VolumeSource) backends.ContentSource {
	if s == nil {
		return backends.ContentSource{}
	}
	return backends.ContentSource(*s)
}

// sizeOf is the size of the volume in bytes; 0 while there is none.
func sizeOf(o *v1alpha1.LocalVolume) int64 { return o.Status.Capacity.Bytes() }

// Find returns the volume of the spec's name.
func (m *Master) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	return m.Get(ctx, m.Handle(spec.Name))
}

// Get returns the volume with the handle.
func (m *Master) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	o, err := m.volumes.find(ctx, handle)
	if err != nil {
		return nil, err
	}
	return m.describe(o), nil
}

// List returns the volumes in the order of their handles, also those that are being made or deleted.
func (m *Master) List(ctx context.Context, page backends.Page) (volumes []backends.Volume, next string, err error) {
	all := func(*v1alpha1.LocalVolume) bool { return true }
	found, next, err := m.volumes.page(ctx, page, all)
	for _, o := range found {
		volumes = append(volumes, *m.describe(o))
	}
	return volumes, next, err
}

// FindSnapshot returns the snapshot of the spec's name.
func (m *Master) FindSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	return m.GetSnapshot(ctx, m.SnapshotHandle(spec.Name))
}

// GetSnapshot returns the snapshot with the handle.
func (m *Master) GetSnapshot(ctx context.Context, handle string) (*backends.Snapshot, error) {
	o, err := m.snapshots.find(ctx, handle)
	if err != nil {
		return nil, err
	}
	return m.describeSnapshot(o), nil
}

// ListSnapshots returns snapshots, of one volume or of all, in the order of their handles, also those that are being
// deleted.
func (m *Master) ListSnapshots(ctx context.Context, volume string, page backends.Page) (
	snapshots []backends.Snapshot, next string, err error) {
	found, next, err := m.snapshots.page(ctx, page, func(o *v1alpha1.LocalSnapshot) bool {
		return m.snapshots.isMade(o) && (volume == "" || o.Spec.Volume == volume)
	})
	for _, o := range found {
		snapshots = append(snapshots, *m.describeSnapshot(o))
	}
	return snapshots, next, err
}

// takenAt is the time of a snapshot's contents; the zero time when the worker has not told it.
func takenAt(o *v1alpha1.LocalSnapshot) time.Time {
	at, err := time.Parse(time.RFC3339Nano, o.Status.TakenAt)
	if err != nil {
		return time.Time{}
	}
	return at
}

// describeSnapshot is the snapshot as the contract has it.
func (m *Master) describeSnapshot(o *v1alpha1.LocalSnapshot) *backends.Snapshot {
	return &backends.Snapshot{
		Handle: o.Name, Name: o.Spec.SnapshotName, Volume: o.Spec.Volume, Ready: true, SizeBytes: o.Status.Size.Bytes(),
		CreatedAt: takenAt(o), Topology: []backends.Topology{m.place(o.Spec.Node)},
	}
}
