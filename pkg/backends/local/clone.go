package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Clone creates a volume with the contents of another. Kinds: as backends.Cloner says; InUse when the source's present
// use rules out a consistent copy.
func (e *engine) Clone(ctx context.Context, spec backends.Spec, source string) (result *backends.Volume, err error) {
	defer annotate(&err, "clone volume", spec.Name)
	p, err := parametersOf(spec.Parameters)
	if err != nil {
		return nil, err
	}
	return e.provision(ctx, spec, backends.ContentSource{Volume: source}, func(ctx context.Context) (*origin, error) {
		return e.fromVolume(ctx, source, p.SourceInUse == copyInUse)
	})
}

// fromVolume holds a volume whose contents are to be copied. A directory in use is InUse unless torn is true, because
// its copy would not show one instant. The copy has all that a node may have written, even if the record says less.
func (e *engine) fromVolume(ctx context.Context, handle string, torn bool) (*origin, error) {
	v, err := e.stock.volumes.get(handle)
	if err != nil {
		return nil, backends.Errorf(classify(err), "the source %q: %w", handle, err)
	}
	release, err := v.hold(ctx)
	if err != nil {
		return nil, err
	}
	if !v.pool.storage.instant && v.inUse.Load() && !torn {
		release()
		return nil, backends.Errorf(backends.InUse,
			"volume %s is a directory in use on node %q, whose copy would not be of one instant: "+
				"stop what uses it, or accept that: by the parameter sourceInUse=copy of a StorageClass, or inUse=copy of a "+
				"VolumeSnapshotClass", handle, e.node)
	}
	size, err := v.length(ctx)
	if err != nil {
		release()
		return nil, err
	}
	return &origin{
		storage: v.pool.storage, size: size, source: backends.ContentSource{Volume: handle}, pool: v.pool,
		data: v.data(), raw: v.record.Load().Raw, volume: v, release: release,
	}, nil
}

// Restore creates a volume with the contents of a snapshot. Kinds: as backends.Snapshotter says.
func (e *engine) Restore(ctx context.Context, spec backends.Spec, handle string) (result *backends.Volume, err error) {
	defer annotate(&err, "restore volume", spec.Name)
	return e.provision(ctx, spec, backends.ContentSource{Snapshot: handle}, func(ctx context.Context) (*origin, error) {
		return e.fromSnapshot(ctx, handle)
	})
}

func (e *engine) fromSnapshot(ctx context.Context, handle string) (*origin, error) {
	s, err := e.stock.snapshots.get(handle)
	if err != nil {
		return nil, backends.Errorf(classify(err), "the source %q: %w", handle, err)
	}
	release, err := s.share(ctx)
	if err != nil {
		return nil, err
	}
	return &origin{
		storage: s.pool.storage, size: s.record.SizeBytes, source: backends.ContentSource{Snapshot: handle}, pool: s.pool,
		data: s.data(), raw: s.record.Raw, release: release,
	}, nil
}
