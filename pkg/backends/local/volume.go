package local

import (
	"context"
	"maps"
	"path/filepath"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// volume is a volume that exists.
type volume struct {
	*guard
	pool   *pool
	dir    string                       // its folder
	record atomic.Pointer[volumeRecord] // replaced as a whole, by an owner of the guard
	inUse  atomic.Bool                  // as the notes say
	// released says that the data directory has a note of its release, which overrides the one in its folder.
	released atomic.Bool
	// frozen says that its filesystem may still be frozen, because a process was killed or thawing failed.
	frozen atomic.Bool
	// taken is how many bytes the ledger has promised for it: more than its size after a failed expansion that could not
	// be undone. An owner of the guard changes it.
	taken int64
	measured
}

func newVolume(p *pool, dir string, record *volumeRecord) *volume {
	v := &volume{guard: newGuard(), pool: p, dir: dir, taken: record.SizeBytes}
	v.record.Store(record)
	return v
}

// data returns the path of the directory or image.
func (v *volume) data() string { return filepath.Join(v.dir, v.pool.storage.data) }

// hold keeps the volume from coming into use while it is copied. For a volume in use whose copy shows one instant, hold
// is exclusive, because the filesystem may have to be frozen.
func (v *volume) hold(ctx context.Context) (release func(), err error) {
	release, err = v.share(ctx)
	if err != nil || !v.pool.storage.instant || !v.inUse.Load() {
		return release, err
	}
	release()
	return v.own(ctx)
}

// replaceRecord writes a changed record, durably. The caller owns the volume.
func (v *volume) replaceRecord(record *volumeRecord) error {
	data, err := encode(record)
	if err != nil {
		return err
	}
	draft := filepath.Join(v.pool.folder(stagingFolder), unique(record.Handle))
	if err := durable.Replace(filepath.Join(v.dir, recordFile), draft, data); err != nil {
		return v.pool.explain(err)
	}
	v.record.Store(record)
	v.pool.index.describe(record.Handle, data)
	return nil
}

// describe returns the volume as the contract has it.
func (e *engine) describe(v *volume) *backends.Volume { return e.describeRecord(v.record.Load()) }

func (e *engine) describeRecord(r *volumeRecord) *backends.Volume {
	return &backends.Volume{
		Handle:        r.Handle,
		Name:          r.Name,
		CapacityBytes: r.size(),
		Fingerprint:   r.Fingerprint,
		Settings:      maps.Clone(r.Settings),
		Source:        backends.ContentSource{Snapshot: r.SourceSnapshot, Volume: r.SourceVolume},
		Access:        r.Type.storage().access().OfRaw(r.Raw),
		Topology:      []backends.Topology{maps.Clone(e.place)},
	}
}

// size is the size that the volume has for certain: during an expansion, the old size.
func (r *volumeRecord) size() int64 {
	if r.ExpandingFromBytes != 0 {
		return r.ExpandingFromBytes
	}
	return r.SizeBytes
}

// Find returns the volume of the spec's name. Kinds: NotFound.
func (e *engine) Find(_ context.Context, spec backends.Spec) (result *backends.Volume, err error) {
	defer annotate(&err, "find volume", spec.Name)
	v, err := e.stock.volumes.get(handleOf(volumePrefix, spec.Name))
	if err != nil {
		return nil, err
	}
	return e.describe(v), nil
}

// Get returns the volume with the handle. Kinds: NotFound.
func (e *engine) Get(_ context.Context, handle string) (result *backends.Volume, err error) {
	defer annotate(&err, "get volume", handle)
	v, err := e.stock.volumes.get(handle)
	if err != nil {
		return nil, err
	}
	return e.describe(v), nil
}
