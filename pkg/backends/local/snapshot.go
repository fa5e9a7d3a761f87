package local

import (
	"context"
	"maps"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// snapshot is a snapshot that exists, on its own or in a group. It never changes.
type snapshot struct {
	*guard
	pool   *pool
	dir    string // its folder
	record *snapshotRecord
	group  string // the handle of its group
	measured
}

func newSnapshot(p *pool, dir string, record *snapshotRecord, group string) *snapshot {
	return &snapshot{guard: newGuard(), pool: p, dir: dir, record: record, group: group}
}

func (s *snapshot) data() string { return filepath.Join(s.dir, s.pool.storage.data) }

func (e *engine) describeSnapshot(s *snapshot) *backends.Snapshot {
	return e.describeSnapshotRecord(s.record, s.group, true)
}

func (e *engine) describeSnapshotRecord(r *snapshotRecord, group string, isReady bool) *backends.Snapshot {
	return &backends.Snapshot{
		Handle:    r.Handle,
		Name:      r.Name,
		Volume:    r.Volume,
		Group:     group,
		SizeBytes: r.SizeBytes,
		CreatedAt: r.CreatedAt,
		Ready:     isReady,
		Topology:  []backends.Topology{maps.Clone(e.place)},
	}
}

// CreateSnapshot copies a volume, sharing blocks if the filesystem can. The copy of an image shows one instant, even in
// use. That of a directory in use does not, and is refused unless the parameters ask for it. Kinds: Exists; NotFound;
// InUse; Exhausted; Busy.
func (e *engine) CreateSnapshot(ctx context.Context,
	spec backends.SnapshotSpec) (result *backends.Snapshot, err error) {
	defer annotate(&err, "create snapshot", spec.Name)
	handle := handleOf(snapshotPrefix, spec.Name)
	s, err := making[*snapshot]{
		shelf: e.stock.snapshots, handle: handle, asked: spec,
		decide: func(ctx context.Context) (plan[*snapshot], error) { return e.planSnapshot(ctx, handle, spec) },
		settle: func(s *snapshot) { e.stock.snapshots.settle(handle, s) },
	}.run(ctx, e.making.snapshots)
	if err != nil {
		return nil, err
	}
	return e.describeSnapshot(s), nil
}

// planSnapshot holds the volume and plans the snapshot.
func (e *engine) planSnapshot(ctx context.Context, handle string, spec backends.SnapshotSpec) (plan[*snapshot], error) {
	var result plan[*snapshot]
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if err := checkName(spec.Name); err != nil {
		return result, err
	}
	if !spec.Topology.Allows(e.place) {
		return result, backends.Errorf(backends.Exhausted, "it must be usable from %v, and snapshots here are on %v only",
			spec.Topology.Requisite, e.place)
	}
	parameters, err := backends.Given[SnapshotParameters](spec.Parameters)
	if err != nil {
		return result, err
	}
	o, err := e.fromVolume(ctx, spec.Volume, parameters.InUse == copyInUse)
	if err != nil {
		return result, err
	}
	return plan[*snapshot]{
		work: "the copy of " + spec.Volume, release: o.release,
		make: func(ctx context.Context) (*snapshot, error) {
			return e.stock.makeSnapshot(ctx, e, e.newSnapshotRecord(handle, spec.Name, o.volume, o.size), o)
		},
	}, nil
}

func (e *engine) newSnapshotRecord(handle, name string, v *volume, size int64) *snapshotRecord {
	r := v.record.Load()
	return &snapshotRecord{
		Version: recordVersion, Handle: handle, Name: name, Type: r.Type, SizeBytes: size,
		CreatedAt: e.now().UTC().Round(0), Volume: r.Handle, Raw: r.Raw,
	}
}

// FindSnapshot returns the snapshot of that name. Kinds: NotFound.
func (e *engine) FindSnapshot(_ context.Context, spec backends.SnapshotSpec) (result *backends.Snapshot, err error) {
	defer annotate(&err, "find snapshot", spec.Name)
	s, err := e.stock.snapshots.get(handleOf(snapshotPrefix, spec.Name))
	if err != nil {
		return nil, err
	}
	return e.describeSnapshot(s), nil
}

// GetSnapshot returns the snapshot with the handle. Kinds: NotFound.
func (e *engine) GetSnapshot(_ context.Context, handle string) (result *backends.Snapshot, err error) {
	defer annotate(&err, "get snapshot", handle)
	s, err := e.stock.snapshots.get(handle)
	if err != nil {
		return nil, err
	}
	return e.describeSnapshot(s), nil
}
