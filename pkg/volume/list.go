package volume

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// List enumerates volumes. Kinds: as backends.Lister; Unsupported.
func (s *Service) List(ctx context.Context, page backends.Page) ([]backends.Volume, string, error) {
	if s.features.List == nil {
		return nil, "", unsupported("list volumes")
	}
	return listed(ctx, s, "list",
		func(ctx context.Context) ([]backends.Volume, string, error) { return s.features.List.List(ctx, page) })
}

// ListHealth enumerates the volumes that are not well. Kinds: as backends.HealthReporter; Unsupported.
func (s *Service) ListHealth(ctx context.Context, page backends.Page) ([]backends.VolumeHealth, string, error) {
	if s.features.Health == nil {
		return nil, "", unsupported("tell the health of volumes")
	}
	return listed(ctx, s, "list-health", func(ctx context.Context) ([]backends.VolumeHealth, string, error) {
		return s.features.Health.ListHealth(ctx, page)
	})
}

// ListSnapshots enumerates snapshots: one by its handle, those of a volume, or all. If there is none, the list is empty
// (CSI, ListSnapshots). Kinds: as backends.SnapshotLister; Unsupported.
func (s *Service) ListSnapshots(ctx context.Context, handle, volume string,
	page backends.Page) ([]backends.Snapshot, string, error) {
	if s.features.Snapshots == nil {
		return nil, "", unsupported("list snapshots")
	}
	switch {
	case handle != "" && page.Token != "":
		return nil, "", backends.Errorf(backends.Busy,
			"the token %.64q is of no list of the one snapshot %q, which has one page: ask without a token", page.Token, handle)
	case handle != "":
		return s.listOne(ctx, handle, volume)
	}
	return listed(ctx, s, "list-snapshots", func(ctx context.Context) ([]backends.Snapshot, string, error) {
		return s.features.Snapshots.ListSnapshots(ctx, volume, page)
	})
}

func (s *Service) listOne(ctx context.Context, handle, volume string) ([]backends.Snapshot, string, error) {
	found, err := s.GetSnapshot(ctx, handle)
	if backends.Is(err, backends.NotFound) {
		return nil, "", nil
	}
	if err != nil || volume != "" && found.Volume != volume {
		return nil, "", err
	}
	return []backends.Snapshot{*found}, "", nil
}
