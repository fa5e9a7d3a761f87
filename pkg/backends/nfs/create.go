package nfs

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// defaultSize is that of a volume for which no size is required, in bytes. A size is a label: NFS enforces none.
const defaultSize = 1 << 30

// Create makes an empty volume. Kinds: as backends.Backend says.
func (e *controllerSide) Create(ctx context.Context, spec backends.Spec) (result *backends.Volume, err error) {
	defer annotate(&err, "create volume", spec.Name)
	return e.provision(ctx, spec, origin{})
}

// target is the share that a spec names. Kinds: Invalid.
func (e *engine) target(spec backends.Spec) (place, error) {
	p, err := given[Parameters](spec.Parameters)
	if err != nil {
		return place{}, err
	}
	switch {
	case p.ShareName != "" && (p.Server != "" || p.Share != ""):
		return place{}, backends.Errorf(backends.Invalid, "the class has shareName %q besides server or share: use one or the other", p.ShareName)
	case p.ShareName != "":
		address, ok := e.named[p.ShareName]
		if !ok {
			return place{}, backends.Errorf(backends.Invalid, "the driver's configuration has no share %q", p.ShareName)
		}
		return place{address, p.ShareName}, nil
	case p.Server == "" || p.Share == "":
		return place{}, backends.Errorf(backends.Invalid, "the class has server %q and share %q: give both, or shareName", p.Server, p.Share)
	}
	address, err := export.Parse(p.Server, p.Share, p.NFSVersion)
	return place{Address: address}, err
}

// provision makes a volume with the contents of the origin, or goes on where an earlier call was cut short.
func (e *engine) provision(ctx context.Context, spec backends.Spec, o origin) (*backends.Volume, error) {
	p, err := e.target(spec)
	if err != nil {
		return nil, err
	}
	var made atomic.Pointer[backends.Volume]
	err = e.pool.With(ctx, p.Address, "making a volume", func(ctx context.Context, s *share.Share) error {
		h, err := s.Home(true)
		if err != nil {
			return err
		}
		e.known.add(p)
		e.janitors.wake(s.Address)
		m := &making{engine: e, share: s, home: h, place: p, origin: o}
		r, err := m.volume(ctx, spec)
		if err == nil {
			made.Store(e.describe(r, s.Address))
		}
		return err
	})
	return orNothing(&made, err)
}

// making is one thing on its way from nothing to its place.
type making struct {
	*engine
	share  *share.Share
	home   *share.Home
	place  place
	origin origin
}

func (m *making) volume(ctx context.Context, spec backends.Spec) (*record, error) {
	id, err := m.home.ID(string(volumeKind), spec.Name)
	if err != nil {
		return nil, err
	}
	unlock, err := m.lock(m.share, volumeKind, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := m.free(volumeKind, id); err != nil {
		return nil, err
	}
	want, err := m.plan(spec, id)
	if err != nil {
		return nil, err
	}
	return m.make(ctx, want)
}

// free tells whether there is nothing of that ID yet. Kinds: Exists.
func (m *making) free(k kind, id string) error {
	r, err := read(m.home, k.folder(), id+suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return backends.Errorf(backends.Exists, "there is a %s of that name: it is %s", k, r.Handle)
}

// plan decides what the volume will be. Kinds: Invalid, OutOfRange, Exhausted; NotFound for the origin.
func (m *making) plan(spec backends.Spec, id string) (*record, error) {
	p, err := given[Parameters](spec.Parameters)
	if err != nil {
		return nil, err
	}
	if err := access().Check(spec.Access); err != nil {
		return nil, err
	}
	if err := m.places.check(m.place.Name, spec.Topology); err != nil {
		return nil, err
	}
	mode, err := p.permissions()
	if err != nil {
		return nil, err
	}
	least, err := m.origin.check(m)
	if err != nil {
		return nil, err
	}
	r := &record{
		Kind: volumeKind, ID: id, Name: spec.Name, OnDelete: p.OnDelete, Permissions: mode, Fingerprint: spec.Fingerprint,
		NFSVersion: p.NFSVersion, SourceSnapshot: m.origin.source.Snapshot, SourceVolume: m.origin.source.Volume,
	}
	if r.OnDelete == "" {
		r.OnDelete = deleteData
	}
	mutable, err := given[Mutable](spec.Mutable)
	if err != nil {
		return nil, err
	}
	mutable.applyTo(r)
	if r.SubDir, err = subDirOf(p.SubDir, spec, id); err != nil {
		return nil, err
	}
	if r.SizeBytes, err = m.size(spec.Capacity, least); err != nil {
		return nil, err
	}
	return r, m.complete(r)
}

// complete gives a new record what makes it this one.
func (m *making) complete(r *record) (err error) {
	r.Version, r.CreatedAt, r.Turn = recordVersion, m.now().UTC().Round(0), share.Random()
	r.Handle, err = handle{kind: r.Kind, address: m.place.Address, share: m.place.Name, home: m.home.Identity(), id: r.ID}.encode()
	return err
}

// size picks a size for contents of at least so many bytes. Kinds: OutOfRange; Exhausted.
func (m *making) size(wanted backends.CapacityRange, least int64) (int64, error) {
	if wanted.LimitBytes != 0 && wanted.LimitBytes < least {
		return 0, backends.Errorf(backends.OutOfRange, "the source has %d bytes, which is more than the limit of %d: raise the limit", least, wanted.LimitBytes)
	}
	wanted.RequiredBytes = max(wanted.RequiredBytes, least)
	size, err := wanted.Round(defaultSize, 1, 1)
	if err != nil {
		return 0, err
	}
	_, free, err := m.share.Space()
	if err == nil && wanted.RequiredBytes > free {
		err = backends.Errorf(backends.Exhausted, "%s has no room for %d bytes: %d are free", m.share.Address, size, free)
	}
	return size, err
}

// subDirOf is the directory of a new volume. A name that is fit for a directory is one by itself. Kinds: Invalid.
func subDirOf(template string, spec backends.Spec, id string) (string, error) {
	if template != "" {
		path, err := expandSubDir(template, spec.Claim)
		if err != nil {
			return "", err
		}
		if err := checkSubDir(path); err != nil {
			return "", backends.Errorf(backends.Invalid, "subDir is %q: %w", path, err)
		}
		return path, nil
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if spec.Name != "" && strings.Trim(spec.Name, plain) == "" && !strings.HasPrefix(spec.Name, ".") && !strings.HasPrefix(spec.Name, "-") && len(spec.Name) <= 128 {
		return spec.Name, nil
	}
	return "volume-" + id, nil
}

// make does what was planned. What an earlier call had begun of the same is gone on with; of another, it is removed.
func (m *making) make(ctx context.Context, want *record) (*record, error) {
	r, err := m.reserve(ctx, want)
	if err != nil {
		return nil, err
	}
	err = m.build(ctx, r)
	switch classify(err) {
	case backends.Busy, backends.Unavailable, backends.Unknown:
		if err != nil {
			return nil, err // The next call goes on.
		}
	default:
		return nil, errors.Join(err, m.abandon(ctx, r))
	}
	return r, m.commit(r)
}

// reserve takes the name, on the share, for all controllers.
func (m *making) reserve(ctx context.Context, want *record) (*record, error) {
	name := want.Kind.makingName(want.ID)
	begun, err := read(m.home, share.Making, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case begun.sameAs(want):
		return begun, nil
	default:
		if err := m.abandon(ctx, begun); err != nil {
			return nil, err
		}
	}
	data, err := want.encode()
	if err != nil {
		return nil, err
	}
	// The draft comes first: where there is a reservation and no draft, the draft has been moved to its place.
	if err := m.share.Files().Mkdir(share.At(share.Staging, want.key()), 0o700); err != nil {
		return nil, err
	}
	if err := m.home.WriteNew(share.Making, name, data); errors.Is(err, fs.ErrExist) {
		busy := backends.Errorf(backends.Busy, "another controller is making it: ask again")
		return nil, errors.Join(busy, m.home.Remove(share.Staging, want.key()))
	} else if err != nil {
		return nil, err
	}
	// Another controller may have finished between the first look and the reservation.
	if err := m.free(want.Kind, want.ID); err != nil {
		return nil, errors.Join(err, m.home.Remove(share.Making, name), m.home.Remove(share.Staging, want.key()))
	}
	return want, nil
}

// sameAs tells whether what was begun is what is wanted.
func (r *record) sameAs(want *record) bool {
	a, b := *r, *want
	for _, one := range []*record{&a, &b} {
		one.Turn, one.CreatedAt, one.Since = "", time.Time{}, time.Time{}
	}
	return reflect.DeepEqual(a, b)
}

// commit makes the thing be there.
func (m *making) commit(r *record) error {
	name := r.Kind.makingName(r.ID)
	err := m.home.Move(share.Making, name, r.Kind.folder(), r.ID+suffix)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Another controller may have done it.
	if done, err := read(m.home, r.Kind.folder(), r.ID+suffix); err == nil && done.Turn == r.Turn {
		return nil
	}
	err = backends.Errorf(backends.Busy, "another controller has given it up: ask again")
	if r.Kind == groupKind { // That one did not see the snapshots that were made since.
		err = errors.Join(err, m.disposeMembers(m.share, m.home, r))
	}
	return err
}
