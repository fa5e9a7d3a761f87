package nfs

import (
	"context"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// Clone creates a volume with the contents of another on the same share. Kinds: as backends.Cloner says; Invalid for a
// source on another share; Busy while the data is being copied.
func (e *controllerSide) Clone(ctx context.Context, spec backends.Spec,
	source string) (result *backends.Volume, err error) {
	defer annotate(&err, "create volume", spec.Name)
	p, err := backends.Given[Parameters](spec.Parameters)
	if err != nil {
		return nil, err
	}
	return e.provision(ctx, spec, origin{
		kind: volumeKind, handle: source, source: backends.ContentSource{Volume: source},
		anyInstant: p.SourceInUse == copyInUse,
	})
}

// Restore creates a volume with the contents of a snapshot on the same share. Kinds: as backends.Snapshotter says;
// Invalid for a snapshot on another share; Busy while the data is being copied.
func (e *controllerSide) Restore(ctx context.Context, spec backends.Spec,
	snapshot string) (result *backends.Volume, err error) {
	defer annotate(&err, "create volume", spec.Name)
	return e.provision(ctx, spec, origin{kind: snapshotKind, handle: snapshot,
		source: backends.ContentSource{Snapshot: snapshot}})
}

// CreateSnapshot copies a volume. Kinds: as backends.Snapshotter says; InUse when the volume is written to meanwhile
// and the class does not accept that; Busy while the data is being copied.
func (e *controllerSide) CreateSnapshot(ctx context.Context,
	spec backends.SnapshotSpec) (result *backends.Snapshot, err error) {
	defer annotate(&err, "create snapshot", spec.Name)
	p, err := backends.Given[SnapshotParameters](spec.Parameters)
	if err != nil {
		return nil, err
	}
	hd, err := e.parse(volumeKind, spec.Volume)
	if err != nil {
		return nil, e.unlessTaken(ctx, spec, err)
	}
	var made atomic.Pointer[backends.Snapshot]
	err = e.pool.With(ctx, hd.address, "taking a snapshot", func(ctx context.Context, s *share.Share) error {
		h, err := e.homeOf(s, hd)
		if err != nil {
			return err
		}
		m := &making{engine: e.engine, share: s, home: h, place: place{hd.address, hd.share}}
		m.origins = []origin{{kind: volumeKind, handle: spec.Volume, anyInstant: p.SourceInUse == copyInUse}}
		r, err := m.snapshot(ctx, spec)
		if err == nil {
			made.Store(e.describeSnapshot(r))
		}
		return err
	})
	return orNothing(&made, undecided(err))
}

// unlessTaken returns the failure, unless a known share has a snapshot of that name. The handle of the volume leads to
// no share, so it does not say where else to look.
func (e *controllerSide) unlessTaken(ctx context.Context, spec backends.SnapshotSpec, failure error) error {
	for _, p := range e.known.sorted() {
		err := e.pool.With(ctx, p.Address, "looking for a snapshot", func(_ context.Context, s *share.Share) error {
			h, err := s.Home(false)
			if err != nil {
				return err
			}
			id, err := h.ID(string(snapshotKind), spec.Name)
			if err != nil {
				return err
			}
			return (&making{engine: e.engine, share: s, home: h}).free(snapshotKind, id)
		})
		if backends.Is(err, backends.Exists) {
			return err
		}
	}
	return failure
}

func (m *making) snapshot(ctx context.Context, spec backends.SnapshotSpec) (*record, error) {
	id, err := m.home.ID(string(snapshotKind), spec.Name)
	if err != nil {
		return nil, err
	}
	return m.make(ctx, snapshotKind, id, func() (*record, error) {
		if err := m.places.check(m.place.Name, spec.Topology); err != nil {
			return nil, err
		}
		size, err := m.origins[0].check(m)
		if err != nil {
			return nil, err
		}
		r := &record{Kind: snapshotKind, ID: id, Name: spec.Name, SizeBytes: size, SourceVolume: spec.Volume}
		return r, m.complete(r)
	})
}

// describeSnapshot returns the backends.Snapshot of a record.
func (e *engine) describeSnapshot(r *record) *backends.Snapshot {
	s := &backends.Snapshot{Handle: r.Handle, Name: r.Name, Volume: r.SourceVolume, SizeBytes: r.SizeBytes,
		CreatedAt: r.CreatedAt, Ready: true, Topology: e.places.of(r)}
	if r.Group != nil {
		s.Group = r.Group.Handle
	}
	return s
}

// FindSnapshot returns the snapshot of the spec's name, on the share of the spec's volume. Kinds: NotFound.
func (e *controllerSide) FindSnapshot(ctx context.Context,
	spec backends.SnapshotSpec) (result *backends.Snapshot, err error) {
	defer annotate(&err, "find snapshot", spec.Name)
	hd, err := e.parse(volumeKind, spec.Volume)
	if err != nil {
		return nil, err
	}
	var found atomic.Pointer[backends.Snapshot]
	err = e.pool.With(ctx, hd.address, "finding a snapshot", func(_ context.Context, s *share.Share) error {
		h, err := e.homeOf(s, hd)
		if err != nil {
			return err
		}
		r, err := e.called(h, snapshotKind, spec.Name)
		if err == nil {
			found.Store(e.describeSnapshot(r))
		}
		return err
	})
	return orNothing(&found, err)
}

// GetSnapshot returns the snapshot with the handle. Kinds: NotFound.
func (e *controllerSide) GetSnapshot(ctx context.Context, handle string) (result *backends.Snapshot, err error) {
	defer annotate(&err, "get snapshot", handle)
	var found atomic.Pointer[backends.Snapshot]
	err = e.found(ctx, snapshotKind, handle, "reading a snapshot's record",
		func(_ context.Context, _ *share.Share, _ *share.Home, r *record) error {
			found.Store(e.describeSnapshot(r))
			return nil
		})
	return orNothing(&found, err)
}

// DeleteSnapshot removes a snapshot, and its data in the background. Kinds: NotFound; Busy; InUse for one of a group.
func (e *controllerSide) DeleteSnapshot(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete snapshot", handle)
	return e.remove(ctx, snapshotKind, handle)
}
