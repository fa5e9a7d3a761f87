package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

type group struct {
	handle, name, fingerprint string
	members                   []*snapshot
	createdAt                 time.Time
}

// CreateGroup copies several volumes. None of them can be mounted during the copies, so that all copies show the same
// instant.
func (b *backend) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	g, err := b.planGroup(ctx, spec)
	if err != nil {
		return nil, err
	}
	err = b.files.copy(ctx, g.members...)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range g.members {
		err = b.finishSnapshot(s, err)
	}
	if err != nil {
		b.groups.remove(g.handle, g.name)
		return nil, err
	}
	b.groups.add(g.handle, g)
	return b.describeGroup(g), nil
}

func (b *backend) planGroup(ctx context.Context, spec backends.GroupSpec) (*group, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if err := b.groups.free(spec.Name); err != nil {
		return nil, err
	}
	volumes, err := b.groupVolumes(spec.Volumes)
	if err != nil {
		return nil, err
	}
	g := &group{handle: b.groups.newHandle(), name: spec.Name, fingerprint: spec.Fingerprint,
		createdAt: time.Now().UTC().Round(0)}
	for _, v := range volumes {
		s, err := b.beginSnapshot(v, g.handle)
		if err != nil {
			b.abandon(g.members, err)
			return nil, err
		}
		g.members = append(g.members, s)
	}
	b.groups.names[g.name] = g.handle
	return g, nil
}

// abandon undoes beginSnapshot.
func (b *backend) abandon(members []*snapshot, why error) {
	for _, s := range members {
		why = b.finishSnapshot(s, why)
	}
}

func (b *backend) groupVolumes(handles []string) ([]*volume, error) {
	if len(handles) == 0 {
		return nil, backends.Errorf(backends.Invalid, "the group names no volume: name at least one")
	}
	var volumes []*volume
	for _, handle := range handles {
		v, err := b.still(handle)
		if err != nil {
			return nil, err
		}
		if slices.Contains(volumes, v) {
			return nil, backends.Errorf(backends.Invalid, "the group names volume %q twice", handle)
		}
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// FindGroup returns the group of that name.
func (b *backend) FindGroup(ctx context.Context, name string) (*backends.Group, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	g, err := b.groups.find(name)
	if err != nil {
		return nil, err
	}
	return b.describeGroup(g), nil
}

// GetGroup returns the group with the handle.
func (b *backend) GetGroup(ctx context.Context, handle string) (*backends.Group, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	g, err := b.groups.get(handle)
	if err != nil {
		return nil, err
	}
	return b.describeGroup(g), nil
}

// DeleteGroup removes a group with all its snapshots.
func (b *backend) DeleteGroup(ctx context.Context, handle string) error {
	g, err := b.beginDeleteGroup(ctx, handle)
	if err != nil {
		return err
	}
	var failed error
	for _, s := range g.members {
		failed = cmp.Or(failed, b.files.remove(s.handle))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range g.members {
		s.removing = false
		if failed == nil {
			b.forgetSnapshot(s)
		}
	}
	if failed != nil {
		return backends.Errorf(backends.Unavailable, "group %q is not deleted, ask again: %w", handle, failed)
	}
	b.groups.remove(g.handle, g.name)
	return nil
}

func (b *backend) beginDeleteGroup(ctx context.Context, handle string) (*group, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	g, err := b.groups.get(handle)
	if err != nil {
		return nil, err
	}
	for _, s := range g.members {
		if err := s.idle(s.handle); err != nil {
			return nil, err
		}
	}
	for _, s := range g.members {
		s.removing = true
	}
	return g, nil
}

func (b *backend) describeGroup(g *group) *backends.Group {
	members := make([]backends.Snapshot, len(g.members))
	for i, s := range g.members {
		members[i] = *b.describeSnapshot(s)
	}
	return &backends.Group{Handle: g.handle, Name: g.name, Snapshots: members, CreatedAt: g.createdAt,
		Fingerprint: g.fingerprint}
}
