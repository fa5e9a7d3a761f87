package nfs

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// defaultSize is the size of a volume without a required size, in bytes. A size is a label: NFS enforces none.
const defaultSize = 1 << 30

// Create creates an empty volume. Kinds: as backends.Backend says.
func (e *controllerSide) Create(ctx context.Context, spec backends.Spec) (result *backends.Volume, err error) {
	defer annotate(&err, "create volume", spec.Name)
	return e.provision(ctx, spec)
}

// target returns the share that a spec names. Kinds: Invalid; Unavailable for a share that is not configured; Denied
// for one that may not be used.
func (e *engine) target(spec backends.Spec) (place, error) {
	p, err := backends.Given[Parameters](spec.Parameters)
	if err != nil {
		return place{}, err
	}
	switch {
	case p.ShareName != "" && (p.Server != "" || p.Share != ""):
		return place{}, backends.Errorf(backends.Invalid,
			"the class has shareName %.64q besides server or share: use one or the other", secret.Option(p.ShareName))
	case p.ShareName != "":
		address, err := e.shareNamed(p.ShareName)
		return place{address, p.ShareName}, err
	case p.Server == "" || p.Share == "":
		return place{}, backends.Errorf(backends.Invalid, "the class lacks server or share: give both, or shareName")
	}
	address, err := export.Parse(p.Server, p.Share, p.NFSVersion)
	if err != nil {
		return place{}, err
	}
	return place{Address: address}, e.allow(address, export.Address.Same)
}

// provision creates a volume, with the contents of the origin if there is one.
func (e *engine) provision(ctx context.Context, spec backends.Spec, from ...origin) (*backends.Volume, error) {
	p, err := e.target(spec)
	if err != nil {
		return nil, err
	}
	var made atomic.Pointer[backends.Volume]
	err = e.pool.With(ctx, p.Address, "making a volume", func(ctx context.Context, s *share.Share) error {
		h, err := e.homeAt(s, p)
		if err != nil {
			return err
		}
		e.janitors.wake(s.Address)
		m := &making{engine: e, share: s, home: h, place: p, origins: from}
		r, err := m.volume(ctx, spec)
		if err == nil || backends.Is(err, backends.Exists) { // Only a share that holds a volume is enumerated.
			e.known.add(p, h.Identity())
			e.known.meet(h)
		}
		if err == nil {
			made.Store(e.describe(r, s.Address))
		}
		return err
	})
	return orNothing(&made, undecided(err))
}

// homeAt returns the home on a share, and creates it if the share never had one. Kinds: Unavailable if it had one that
// is missing now.
func (e *engine) homeAt(s *share.Share, p place) (*share.Home, error) {
	used := e.known.used(p)
	h, err := s.Home(!used)
	if used && errors.Is(err, fs.ErrNotExist) {
		return nil, backends.Errorf(backends.Unavailable,
			"%s has no directory %s, and had one: does the server export something else? Bring the share back; "+
				"if it was emptied on purpose, remove %s and start the controller anew", s.Address, share.HomeName, e.known.path)
	}
	if err != nil {
		return nil, err
	}
	return h, e.known.agrees(p, h.Identity())
}

func (m *making) volume(ctx context.Context, spec backends.Spec) (*record, error) {
	id, err := m.home.ID(string(volumeKind), spec.Name)
	if err != nil {
		return nil, err
	}
	return m.make(ctx, volumeKind, id, func() (*record, error) { return m.plan(spec, id) })
}

// plan decides what the volume will be. Kinds: Invalid, OutOfRange; NotFound for the origin.
func (m *making) plan(spec backends.Spec, id string) (*record, error) {
	p, err := backends.Given[Parameters](spec.Parameters)
	if err != nil {
		return nil, err
	}
	if err := access(p.NFSVersion).Check(spec.Access); err != nil {
		return nil, err
	}
	if err := m.places.check(m.place.Name, spec.Topology); err != nil {
		return nil, err
	}
	mode, err := p.permissions()
	if err != nil {
		return nil, err
	}
	r := &record{Kind: volumeKind, ID: id, Name: spec.Name, OnDelete: p.OnDelete, Permissions: mode,
		Fingerprint: spec.Fingerprint, Settings: spec.Settings, NFSVersion: p.NFSVersion}
	least := int64(0)
	for i := range m.origins {
		if least, err = m.origins[i].check(m); err != nil {
			return nil, err
		}
		r.SourceSnapshot, r.SourceVolume = m.origins[i].source.Snapshot, m.origins[i].source.Volume
	}
	if r.OnDelete == "" {
		r.OnDelete = deleteData
	}
	mutable, err := backends.Given[Mutable](spec.Mutable)
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
	if err := m.complete(r); err != nil {
		return nil, err
	}
	return r, checkContext(m.describe(r, m.share.Address))
}

// complete gives a new record what makes it this one.
func (m *making) complete(r *record) (err error) {
	r.Version, r.CreatedAt, r.Turn, r.Revision = recordVersion, m.now().UTC().Round(0), share.Random(), 1
	r.Handle, err = handle{kind: r.Kind, address: m.place.Address, share: m.place.Name, home: m.home.Identity(),
		id: r.ID}.encode()
	return err
}

// size returns the size for contents of at least the given number of bytes. Kinds: OutOfRange.
func (m *making) size(wanted backends.CapacityRange, least int64) (int64, error) {
	if wanted.LimitBytes != 0 && wanted.LimitBytes < least {
		return 0, backends.Errorf(backends.OutOfRange,
			"the source has %d bytes, which is more than the limit of %d: raise the limit", least, wanted.LimitBytes)
	}
	wanted.RequiredBytes = max(wanted.RequiredBytes, least)
	m.required = wanted.RequiredBytes
	return wanted.Round(defaultSize, 1, 1)
}

// room fails if less is free than is required. It is called before anything is created, because the new item takes some
// room itself. Kinds: Exhausted.
func (m *making) room() error {
	_, free, err := m.share.Space()
	if err == nil && m.required > free {
		err = backends.Errorf(backends.Exhausted, "%s has no room for %d bytes: %d are free", m.share.Address, m.required,
			free)
	}
	return err
}

// subDirOf returns the directory of a new volume. A name that is valid as a directory's name is used as it is. Kinds:
// Invalid.
func subDirOf(template string, spec backends.Spec, id string) (string, error) {
	if template != "" {
		path, err := expandSubDir(template, spec.Claim)
		if err != nil {
			return "", err
		}
		if err := checkSubDir(path); err != nil {
			return "", backends.Errorf(backends.Invalid, "subDir is %q: %w", secret.Option(path), err)
		}
		return path, nil
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if spec.Name != "" && strings.Trim(spec.Name, plain) == "" && !strings.HasPrefix(spec.Name, ".") &&
		!strings.HasPrefix(spec.Name, "-") && len(spec.Name) <= 128 {
		return spec.Name, nil
	}
	return "volume-" + id, nil
}
