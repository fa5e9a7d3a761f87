package volume

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tracing"
)

// Create creates a volume, empty or filled from source, or finds the one that an earlier call created under the name.
// Kinds: as backends.Backend.Create; Exists when the name is taken by another volume. IsAbsent reports whether a
// failure comes with the proof that there is no volume.
func (s *Service) Create(ctx context.Context, spec backends.Spec,
	source backends.ContentSource) (*backends.Volume, error) {
	return tracing.Run(ctx, "volume create",
		func(ctx context.Context) (*backends.Volume, error) { return s.create(ctx, spec, source) })
}

func (s *Service) create(ctx context.Context, spec backends.Spec,
	source backends.ContentSource) (*backends.Volume, error) {
	made, err := creating(ctx, s, "create", spec.Name, func(ctx context.Context) (*backends.Volume, error) {
		return s.fill(ctx, spec, source)
	})
	if !backends.Is(err, backends.Exists) && !backends.Is(err, backends.Denied) {
		return made, s.proven(ctx, spec, err)
	}
	found, looked := observed(ctx, s, "find", spec.Name, func(ctx context.Context) (*backends.Volume, error) {
		return s.backend.Find(ctx, spec)
	})
	switch {
	case backends.Is(err, backends.Denied):
		return nil, s.proven(ctx, spec, doubted(err, looked))
	case backends.Is(looked, backends.NotFound):
		return nil, gone("volume", spec.Name)
	case looked != nil:
		return nil, doubted(looked, looked)
	}
	return found, sameVolume(found, spec, source)
}

// fill calls the backend's method for the source.
func (s *Service) fill(ctx context.Context, spec backends.Spec,
	source backends.ContentSource) (*backends.Volume, error) {
	switch {
	case source.Snapshot != "" && s.features.Snapshot == nil:
		return nil, backends.Errorf(backends.Invalid, "this backend cannot restore snapshots")
	case source.Snapshot != "":
		return s.features.Snapshot.Restore(ctx, spec, source.Snapshot)
	case source.Volume != "" && s.features.Clone == nil:
		return nil, backends.Errorf(backends.Invalid, "this backend cannot clone volumes")
	case source.Volume != "":
		return s.features.Clone.Clone(ctx, spec, source.Volume)
	default:
		return s.backend.Create(ctx, spec)
	}
}
