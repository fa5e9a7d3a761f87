package memory

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// List enumerates the volumes, oldest first.
func (b *backend) List(ctx context.Context, page backends.Page) ([]backends.Volume, string, error) {
	if err := b.lock(ctx); err != nil {
		return nil, "", err
	}
	defer b.mu.Unlock()
	rows, next, err := b.volumes.list(page, func(*volume) bool { return true })
	volumes := make([]backends.Volume, len(rows))
	for i, v := range rows {
		volumes[i] = *b.describe(v)
	}
	return volumes, next, err
}

// ListSnapshots enumerates the snapshots of a volume, or all, oldest first.
func (b *backend) ListSnapshots(ctx context.Context, volume string,
	page backends.Page) ([]backends.Snapshot, string, error) {
	if err := b.lock(ctx); err != nil {
		return nil, "", err
	}
	defer b.mu.Unlock()
	rows, next, err := b.snapshots.list(page, func(s *snapshot) bool { return volume == "" || s.volume == volume })
	snapshots := make([]backends.Snapshot, len(rows))
	for i, s := range rows {
		snapshots[i] = *b.describeSnapshot(s)
	}
	return snapshots, next, err
}
