package local

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The sizes of volumes in bytes. An image is a whole number of pages, so that it fits any block size of a loop device.
// The size of a directory is a label or a quota.
const (
	defaultSize   = 1 << 30
	leastImage    = 1 << 20
	imageStep     = 4096
	directoryStep = 1
)

// Create creates an empty volume. Kinds: as backends.Backend says.
func (e *engine) Create(ctx context.Context, spec backends.Spec) (result *backends.Volume, err error) {
	defer annotate(&err, "create volume", spec.Name)
	return e.provision(ctx, spec, backends.ContentSource{},
		func(context.Context) (*origin, error) { return nothing(), nil })
}

// origin is the source of a new volume's contents.
type origin struct {
	storage *storage // of its volume or snapshot; nil for an empty origin
	size    int64    // the minimum size of the volume in bytes
	source  backends.ContentSource
	pool    *pool   // the pool that has it
	data    string  // the directory or image
	raw     bool    // created as a raw device
	volume  *volume // the volume that owns the data, if it may be in use
	release func()  // releases it
}

// needs returns how much room a copy of size bytes needs in a pool while it is made.
func (o *origin) needs(ctx context.Context, p *pool, size int64) (int64, error) {
	if o.storage == nil {
		return size, nil
	}
	return o.storage.needs(ctx, o.data, size, p.ledger.disk == o.pool.ledger.disk && p.shares())
}

// opener finds an origin and holds it.
type opener func(ctx context.Context) (*origin, error)

// nothing returns the origin of an empty volume.
func nothing() *origin { return &origin{release: func() {}} }

// volumeRequest is all that a call specifies about the volume.
type volumeRequest struct {
	spec   backends.Spec
	source backends.ContentSource
}

// provision creates a volume. It reserves the name first: a name that is taken is Exists, whatever else is wrong with
// the request.
func (e *engine) provision(ctx context.Context, spec backends.Spec, source backends.ContentSource,
	from opener) (*backends.Volume, error) {
	handle := handleOf(volumePrefix, spec.Name)
	v, err := making[*volume]{
		shelf: e.stock.volumes, handle: handle, asked: volumeRequest{spec, source},
		decide: func(ctx context.Context) (plan[*volume], error) { return e.planVolume(ctx, spec, from) },
		settle: func(v *volume) { e.stock.volumes.settle(handle, v) },
	}.run(ctx, e.making.volumes)
	if err != nil {
		return nil, err
	}
	return e.describe(v), nil
}

// planVolume holds the volume's origin and plans the volume.
func (e *engine) planVolume(ctx context.Context, spec backends.Spec, from opener) (plan[*volume], error) {
	var result plan[*volume]
	if err := ctx.Err(); err != nil {
		return result, err
	}
	o, err := from(ctx)
	if err != nil {
		return result, err
	}
	defer func() {
		if result.release == nil { // It failed or panicked.
			o.release()
		}
	}()
	p, record, err := e.plan(spec, o)
	if err != nil {
		return result, err
	}
	result.release = o.release
	result.make = func(ctx context.Context) (*volume, error) { return e.stock.makeVolume(ctx, e, p, record, o) }
	if o.storage != nil {
		result.work = fmt.Sprintf("the copy of %s", cmp.Or(o.source.Volume, o.source.Snapshot))
	} else if record.Allocation == full {
		result.work = fmt.Sprintf("setting %d bytes aside", record.SizeBytes)
	}
	return result, nil
}

// plan decides on the pool and the record of the volume. Kinds: Invalid, OutOfRange, and Exhausted for a place that is
// not here, as CSI's CreateVolume has it for a topology that cannot be met.
func (e *engine) plan(spec backends.Spec, o *origin) (*pool, *volumeRecord, error) {
	parameters, err := parametersOf(spec.Parameters)
	if err != nil {
		return nil, nil, err
	}
	p, err := e.pool(parameters.Pool)
	if err != nil {
		return nil, nil, err
	}
	if err := checkName(spec.Name); err != nil {
		return nil, nil, err
	}
	if err := p.storage.access().Check(spec.Access); err != nil {
		return nil, nil, err
	}
	if !spec.Topology.Allows(e.place) {
		return nil, nil, backends.Errorf(backends.Exhausted, "it must be reachable from %v, and volumes here are on %v only",
			spec.Topology.Requisite, e.place)
	}
	if o.storage != nil && o.storage.name != p.storage.name {
		return nil, nil, backends.Errorf(backends.Invalid,
			"the source is of type %q and pool %q of type %q: use a pool of the source's type", o.storage.name, p.name,
			p.storage.name)
	}
	if err := spec.CheckMode(o.raw); err != nil {
		return nil, nil, err
	}
	size, err := p.storage.size(spec.Capacity, cmp.Or(o.size, defaultSize),
		p.storage.least(spec.LeastDeviceBytes, o.size))
	if err != nil {
		return nil, nil, err
	}
	record, err := e.newRecord(spec, parameters, o)
	if err != nil {
		return nil, nil, err
	}
	record.Type, record.SizeBytes = p.storage.name, size
	return p, record, record.checkParameters()
}

func (e *engine) newRecord(spec backends.Spec, p Parameters, o *origin) (*volumeRecord, error) {
	r := &volumeRecord{
		Version:        recordVersion,
		Handle:         handleOf(volumePrefix, spec.Name),
		Name:           spec.Name,
		CreatedAt:      e.now().UTC().Round(0),
		Allocation:     p.Allocation,
		OnDelete:       p.OnDelete,
		Fingerprint:    spec.Fingerprint,
		Settings:       maps.Clone(spec.Settings),
		SourceSnapshot: o.source.Snapshot,
		SourceVolume:   o.source.Volume,
		Raw:            spec.Raw(),
	}
	if p.ReadAheadKiB != nil {
		r.ReadAheadKiB = *p.ReadAheadKiB
	}
	mutable, err := backends.Given[Mutable](spec.Mutable)
	if err != nil {
		return nil, err
	}
	mutable.applyTo(r)
	return r, nil
}
