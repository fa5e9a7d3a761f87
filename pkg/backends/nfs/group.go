package nfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// CreateGroup copies volumes of one share. All copies are of one instant: the server's time when the group was begun.
// Kinds: as backends.GroupSnapshotter says; InUse for volumes of several shares, and when one of them is written to
// meanwhile and the class does not accept that; Busy while the data is being copied.
func (e *controllerSide) CreateGroup(ctx context.Context, spec backends.GroupSpec) (result *backends.Group, err error) {
	defer annotate(&err, "create group snapshot", spec.Name)
	p, err := backends.Given[SnapshotParameters](spec.Parameters)
	if err != nil {
		return nil, err
	}
	hd, err := e.shareOf(spec.Volumes)
	if backends.Is(err, backends.Denied) { // The share is not allowed now, and may hold the group.
		err = undecided(err)
	}
	if err != nil {
		if taken, findErr := e.FindGroup(ctx, spec.Name); findErr == nil {
			return nil, backends.Errorf(backends.Exists, "there is a %s of that name: it is %s", groupKind, taken.Handle)
		}
		return nil, err
	}
	var made atomic.Pointer[backends.Group]
	err = e.pool.With(ctx, hd.address, "taking a group snapshot", func(ctx context.Context, s *share.Share) error {
		h, err := e.homeOf(s, hd)
		if err != nil {
			return err
		}
		m := &making{engine: e.engine, share: s, home: h, place: place{hd.address, hd.share}}
		r, err := m.group(ctx, spec, p.SourceInUse == copyInUse)
		if err != nil {
			return err
		}
		g, err := e.describeGroup(s, h, r)
		made.Store(g)
		return err
	})
	return orNothing(&made, undecided(err))
}

// shareOf returns the handle of one of the volumes, which must all be on one share. Kinds: Invalid; NotFound; InUse
// when they are on several.
func (e *engine) shareOf(volumes []string) (hd handle, err error) {
	if len(volumes) == 0 || len(volumes) > backends.MostMembers {
		return hd, backends.Errorf(backends.Invalid, "the group has %d volumes: name 1 to %d", len(volumes),
			backends.MostMembers)
	}
	for i, volume := range volumes {
		if slices.Contains(volumes[:i], volume) {
			return hd, backends.Errorf(backends.Invalid, "the volume %q is named twice: name each once", volume)
		}
		other, err := e.parse(volumeKind, volume)
		if err != nil {
			return hd, err
		}
		// One handle may have the name of the share in the configuration, and another its address.
		if i > 0 && (!other.address.Same(hd.address) || other.home != hd.home) {
			return hd, backends.Errorf(backends.InUse, "the volumes are on %s and on %s: a group is of one share", hd.where(),
				other.where())
		}
		hd = other
	}
	return hd, nil
}

func (m *making) group(ctx context.Context, spec backends.GroupSpec, anyInstant bool) (*record, error) {
	id, err := m.home.ID(string(groupKind), spec.Name)
	if err != nil {
		return nil, err
	}
	return m.make(ctx, groupKind, id, func() (*record, error) { return m.plannedGroup(spec, id, anyInstant) })
}

// plannedGroup plans the group. Its snapshots have IDs that only this attempt uses, so they do not conflict with those
// of other attempts. Kinds: NotFound for a volume.
func (m *making) plannedGroup(spec backends.GroupSpec, id string, anyInstant bool) (*record, error) {
	r := &record{Kind: groupKind, ID: id, Name: spec.Name, Fingerprint: spec.Fingerprint}
	if err := m.complete(r); err != nil {
		return nil, err
	}
	for _, volume := range spec.Volumes {
		from := origin{kind: volumeKind, handle: volume, anyInstant: anyInstant}
		size, err := from.check(m)
		if err != nil {
			return nil, err
		}
		memberID, err := m.home.ID("member", r.Turn+"\x00"+volume)
		if err != nil {
			return nil, err
		}
		r.SizeBytes += size
		r.Members = append(r.Members, member{ID: memberID, Volume: volume})
		m.origins = append(m.origins, from)
	}
	return r, nil
}

// describeGroup returns the backends.Group of a record. If its controller was stopped just after publishing it,
// describeGroup first moves the snapshots to their places. Kinds: NotFound if it was deleted meanwhile; Unusable if the
// record of a snapshot is lost.
func (e *engine) describeGroup(s *share.Share, h *share.Home, r *record) (*backends.Group, error) {
	if err := e.settle(s, h, r); err != nil {
		return nil, err
	}
	g := &backends.Group{Handle: r.Handle, Name: r.Name, CreatedAt: r.CreatedAt, Fingerprint: r.Fingerprint}
	for _, of := range r.Members {
		snapshot, err := e.whole(h, snapshotKind, of.ID)
		if backends.Is(err, backends.NotFound) {
			err = e.withoutMember(h, r, of)
		}
		if err != nil {
			return nil, err
		}
		g.Snapshots = append(g.Snapshots, *e.describeSnapshot(snapshot))
	}
	return g, nil
}

// withoutMember returns the failure for a group of which a snapshot has no record. A deletion removes the record of the
// group first, so a group that is still there has lost the snapshot's. Kinds: NotFound; Busy; Unusable.
func (e *engine) withoutMember(h *share.Home, g *record, of member) error {
	if err := hasFolder(h, share.Groups); err != nil {
		return err
	}
	now, err := e.whole(h, groupKind, g.ID)
	switch {
	case err != nil:
		return err
	case now.Turn != g.Turn:
		return backends.Errorf(backends.Busy, "%w", errReplaced)
	}
	return backends.Errorf(backends.Unusable,
		"the group snapshot has lost the record of its snapshot of volume %s: restore %s from a backup, or delete the group "+
			"snapshot", of.Volume, share.At(share.Snapshots, of.ID+suffix))
}

// GetGroup returns the group with the handle. Kinds: NotFound.
func (e *controllerSide) GetGroup(ctx context.Context, handle string) (result *backends.Group, err error) {
	defer annotate(&err, "get group snapshot", handle)
	var found atomic.Pointer[backends.Group]
	err = e.found(ctx, groupKind, handle, "reading a group's record",
		func(_ context.Context, s *share.Share, h *share.Home, r *record) error {
			g, err := e.describeGroup(s, h, r)
			found.Store(g)
			return err
		})
	return orNothing(&found, err)
}

// FindGroup returns the group of the name, on any known share. It asks all shares at once, because one may be slow. The
// first answer does not end the other lookups, because other calls may depend on them, for example on the mount of a
// share. Kinds: NotFound; Unavailable when a share does not answer and none of the others has it.
func (e *controllerSide) FindGroup(ctx context.Context, name string) (result *backends.Group, err error) {
	defer annotate(&err, "find group snapshot", name)
	type answer struct {
		group *backends.Group
		err   error
	}
	places := e.known.sorted()
	answers := make(chan answer, len(places))
	for _, p := range places {
		go func() {
			ctx, cancel := unended(ctx)
			defer cancel()
			group, err := e.groupAt(ctx, p, name)
			answers <- answer{group, err}
		}()
	}
	var failures []error
	for range places {
		var a answer
		select {
		case a = <-answers:
		case <-ctx.Done():
			a.err = backends.Errorf(backends.Unavailable, "a share has not answered yet: ask again: %w", ctx.Err())
		}
		switch {
		case a.err == nil:
			return a.group, nil
		case !backends.Is(a.err, backends.NotFound):
			failures = append(failures, a.err)
		}
	}
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	return nil, backends.Errorf(backends.NotFound, "there is no such %s", groupKind)
}

// unended returns the context of a call without its cancellation. It keeps the call's deadline, or has one within which
// a healthy server answers.
func unended(call context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx = context.WithoutCancel(call)
	if at, ok := call.Deadline(); ok {
		return context.WithDeadline(ctx, at)
	}
	return context.WithTimeout(ctx, probeTime)
}

func (e *engine) groupAt(ctx context.Context, p place, name string) (*backends.Group, error) {
	var found atomic.Pointer[backends.Group]
	err := e.pool.With(ctx, p.Address, "finding a group snapshot", func(_ context.Context, s *share.Share) error {
		g, err := e.groupOn(s, name)
		found.Store(g)
		return err
	})
	return orNothing(&found, err)
}

func (e *engine) groupOn(s *share.Share, name string) (*backends.Group, error) {
	h, err := s.Home(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, backends.Errorf(backends.NotFound, "there is nothing of this driver on %s", s.Address)
	}
	if err != nil {
		return nil, err
	}
	r, err := e.called(h, groupKind, name)
	if err != nil {
		return nil, err
	}
	return e.describeGroup(s, h, r)
}

// DeleteGroup removes a group and its snapshots, and their data in the background. Kinds: NotFound; Busy.
func (e *controllerSide) DeleteGroup(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete group snapshot", handle)
	return e.remove(ctx, groupKind, handle)
}
