package volume_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// full is a backend whose disk is full, and that does not classify the kernel's errors.
type full struct {
	backends.Backend
	backends.Snapshotter
	backends.GroupSnapshotter
	err error
}

func (f full) Create(context.Context, backends.Spec) (*backends.Volume, error) { return nil, f.err }

func (f full) CreateSnapshot(context.Context, backends.SnapshotSpec) (*backends.Snapshot, error) {
	return nil, f.err
}

func (f full) CreateGroup(context.Context, backends.GroupSpec) (*backends.Group, error) {
	return nil, f.err
}

func (f full) Expand(context.Context, string, backends.CapacityRange) (backends.Expansion, error) {
	return backends.Expansion{}, f.err
}

// TestFullDiskIsNotFinal: csi-provisioner and csi-snapshotter forget a name after RESOURCE_EXHAUSTED and OUT_OF_RANGE,
// although the backend may have created the volume before the disk was full. A larger claim may be lowered.
func TestFullDiskIsNotFinal(t *testing.T) {
	for _, row := range []struct {
		err               error
		creating, growing backends.Kind
	}{
		{fmt.Errorf("write: %w", syscall.ENOSPC), backends.Unavailable, backends.Exhausted},
		{fmt.Errorf("write: %w", syscall.EIO), backends.Unavailable, backends.Unavailable},
		{backends.Errorf(backends.Exhausted, "no room: %w", syscall.ENOSPC), backends.Exhausted, backends.Exhausted},
	} {
		backend := full{err: row.err}
		s := volume.New(backend, backends.Resolve(backend, nil), nil)
		_, err := s.Create(t.Context(), spec("a"), backends.ContentSource{})
		wantKind(t, err, row.creating)
		_, err = s.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "a"})
		wantKind(t, err, row.creating)
		_, err = s.CreateGroup(t.Context(), backends.GroupSpec{Name: "a"})
		wantKind(t, err, row.creating)
		_, err = s.Expand(t.Context(), "v", backends.CapacityRange{})
		wantKind(t, err, row.growing)
	}
}
