package localvolume

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// describe converts a LocalVolume to a backends.Volume.
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

// sizeOf returns the size of the volume in bytes, or 0 while it does not exist.
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

// FindSnapshot returns the snapshot of the spec's name.
func (m *Master) FindSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	return m.GetSnapshot(ctx, m.SnapshotHandle(spec.Name))
}

// GetSnapshot returns the snapshot with the handle, a group's member included.
func (m *Master) GetSnapshot(ctx context.Context, handle string) (*backends.Snapshot, error) {
	o, err := m.snapshots.find(ctx, handle)
	switch {
	case backends.Is(err, backends.NotFound):
		return m.member(ctx, handle)
	case err != nil:
		return nil, err
	}
	return m.describeSnapshot(o), nil
}

// timeOf parses a time in a status. It returns the zero time if the worker has not reported a valid one.
func timeOf(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// describeSnapshot converts a LocalSnapshot to a backends.Snapshot.
func (m *Master) describeSnapshot(o *v1alpha1.LocalSnapshot) *backends.Snapshot {
	return &backends.Snapshot{
		Handle: o.Name, Name: o.Spec.SnapshotName, Volume: o.Spec.Volume, Ready: true, SizeBytes: o.Status.Size.Bytes(),
		CreatedAt: timeOf(o.Status.TakenAt), Topology: []backends.Topology{m.place(o.Spec.Node)},
	}
}
