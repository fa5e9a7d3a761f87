package memory

import (
	"context"
	"maps"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// create creates a volume in three steps. plan reserves its name and room under the lock, the files are created without
// the lock, and finish records the volume or undoes everything.
func (b *backend) create(ctx context.Context, spec backends.Spec,
	source func() (origin, error)) (*backends.Volume, error) {
	v, from, err := b.plan(ctx, spec, source)
	if err != nil {
		return nil, err
	}
	err = b.files.create(ctx, v.handle, from.handle, v.size)
	return b.finish(v, from, err)
}

func (b *backend) plan(ctx context.Context, spec backends.Spec,
	source func() (origin, error)) (*volume, origin, error) {
	if err := b.lock(ctx); err != nil {
		return nil, origin{}, err
	}
	defer b.mu.Unlock()
	// Check the name first: a caller that retries must learn that the volume exists, even if its source is gone by now or
	// there is no room for another volume.
	if err := b.volumes.free(spec.Name); err != nil {
		return nil, origin{}, err
	}
	from, err := source()
	if err != nil {
		return nil, origin{}, err
	}
	v, err := b.design(spec, from)
	if err != nil {
		return nil, origin{}, err
	}
	from.hold.readers++
	b.volumes.names[v.name] = v.handle
	b.used += v.size
	return v, from, nil
}

// design checks the spec and decides all properties of the volume.
func (b *backend) design(spec backends.Spec, from origin) (*volume, error) {
	parameters, err := backends.Given[Parameters](spec.Parameters)
	if err != nil {
		return nil, err
	}
	mutable, err := backends.Given[Mutable](spec.Mutable)
	if err != nil {
		return nil, err
	}
	if err := everyAccess().Check(spec.Access); err != nil {
		return nil, err
	}
	if err := spec.CheckMode(from.raw); err != nil {
		return nil, err
	}
	if !spec.Topology.Allows(b.zone) {
		return nil, backends.Errorf(backends.Exhausted, "no place in %v: all storage is in %v", spec.Topology.Requisite,
			b.zone)
	}
	size, err := b.room(spec.Capacity, from.preferred, from.least, 0)
	if err != nil {
		return nil, err
	}
	v := &volume{
		handle: b.volumes.newHandle(), name: spec.Name, fingerprint: spec.Fingerprint, tier: parameters.Tier,
		settings: maps.Clone(spec.Settings),
		size:     size, raw: spec.Raw(), source: from.content, attached: map[string]attachment{},
	}
	mutable.apply(v)
	return v, nil
}

func (b *backend) finish(v *volume, from origin, err error) (*backends.Volume, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from.hold.readers--
	if err != nil {
		b.volumes.remove(v.handle, v.name)
		b.used -= v.size
		return nil, err
	}
	b.volumes.add(v.handle, v)
	return b.describe(v), nil
}
