package nfs

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// List returns volumes in a stable order. Kinds: as enumerate.
func (e *controllerSide) List(ctx context.Context,
	page backends.Page) (volumes []backends.Volume, next string, err error) {
	defer annotate(&err, "list volumes", "")
	found, next, err := e.enumerate(ctx, volumeKind, page, func(*record) bool { return true })
	for _, f := range found {
		volumes = append(volumes, *e.describeEntry(f))
	}
	return volumes, next, err
}

// describeEntry returns the backends.Volume of an entry. If its record is damaged, the volume has only the handle and
// the place.
func (e *engine) describeEntry(f entry) *backends.Volume {
	if f.damage != nil {
		return &backends.Volume{Handle: f.Handle, Topology: e.places.of(f.record)}
	}
	return e.describe(f.record, f.place.Address)
}

// ListSnapshots returns snapshots, of one volume or of all, in a stable order. Kinds: as enumerate.
func (e *controllerSide) ListSnapshots(ctx context.Context, volume string,
	page backends.Page) (snapshots []backends.Snapshot, next string, err error) {
	defer annotate(&err, "list snapshots", volume)
	found, next, err := e.enumerate(ctx, snapshotKind, page,
		func(r *record) bool { return volume == "" || r.SourceVolume == volume })
	for _, f := range found {
		s := e.describeSnapshot(f.record)
		s.Ready = f.damage == nil
		snapshots = append(snapshots, *s)
	}
	return snapshots, next, err
}
