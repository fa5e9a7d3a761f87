package local

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// CreateGroup takes snapshots of several images of one pool at one instant. Kinds: Exists; NotFound; InUse when the use
// of an image rules that out, for directory volumes, whose copies show no single instant, or for volumes in different
// pools, whose snapshots could not be published in one step; Invalid for volumes that are named twice; Exhausted; Busy.
func (e *grouping) CreateGroup(ctx context.Context, spec backends.GroupSpec) (result *backends.Group, err error) {
	defer annotate(&err, "create group", spec.Name)
	handle := handleOf(groupPrefix, spec.Name)
	g, err := making[*group]{
		shelf: e.stock.groups, handle: handle, asked: spec, settle: e.stock.shelve,
		decide: func(ctx context.Context) (plan[*group], error) { return e.planGroup(ctx, handle, spec) },
	}.run(ctx, e.making.groups)
	if err != nil {
		return nil, err
	}
	return e.describeGroup(g), nil
}

// planGroup holds the volumes and plans the group.
func (e *grouping) planGroup(ctx context.Context, handle string, spec backends.GroupSpec) (plan[*group], error) {
	var result plan[*group]
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if err := checkName(spec.Name); err != nil {
		return result, err
	}
	volumes, err := e.groupVolumes(spec.Volumes)
	if err != nil {
		return result, err
	}
	release, err := holdAll(ctx, volumes)
	if err != nil {
		return result, err
	}
	return plan[*group]{
		work: "the copy of " + strings.Join(spec.Volumes, ", "), release: release,
		make: func(ctx context.Context) (*group, error) {
			record, err := e.newGroupRecord(ctx, handle, spec, volumes)
			if err != nil {
				return nil, err
			}
			return e.stock.makeGroup(ctx, e, record, volumes)
		},
	}, nil
}

// groupVolumes looks up the volumes and refuses volumes that cannot be in a group together.
func (e *grouping) groupVolumes(handles []string) ([]*volume, error) {
	if len(handles) == 0 {
		return nil, backends.Errorf(backends.Invalid, "the group names no volume: name at least one")
	}
	var volumes []*volume
	for i, handle := range handles {
		if slices.Contains(handles[:i], handle) {
			return nil, backends.Errorf(backends.Invalid, "volume %q is named twice: name it once", handle)
		}
		v, err := e.stock.volumes.get(handle)
		if err != nil {
			return nil, backends.Errorf(classify(err), "volume %q: %w", handle, err)
		}
		if !v.pool.storage.instant {
			return nil, backends.Errorf(backends.InUse,
				"volume %s is a directory, whose copy is not of one instant: only volumes of pools of type image can be in a group",
				handle)
		}
		volumes = append(volumes, v)
		if first := volumes[0]; v.pool != first.pool {
			return nil, backends.Errorf(backends.InUse,
				"volumes %s and %s are in the pools %q and %q: a group must be of one pool",
				handles[0], handle, first.pool.name, v.pool.name)
		}
	}
	return volumes, nil
}

// holdAll holds all volumes, in the order of their handles, so that two groups never deadlock.
func holdAll(ctx context.Context, volumes []*volume) (release func(), err error) {
	var releases []func()
	release = func() {
		for _, r := range releases {
			r()
		}
	}
	ordered := slices.Clone(volumes)
	slices.SortFunc(ordered, func(a, b *volume) int {
		return strings.Compare(a.record.Load().Handle, b.record.Load().Handle)
	})
	for _, v := range ordered {
		r, err := v.hold(ctx)
		if err != nil {
			release()
			return nil, err
		}
		releases = append(releases, r)
	}
	return release, nil
}

// newGroupRecord returns the record of a group of the volumes, which the caller holds. Kinds: Unavailable.
func (e *grouping) newGroupRecord(ctx context.Context, handle string, spec backends.GroupSpec,
	volumes []*volume) (*groupRecord, error) {
	record := &groupRecord{Version: recordVersion, Handle: handle, Name: spec.Name, CreatedAt: e.now().UTC().Round(0),
		Fingerprint: spec.Fingerprint}
	for i, v := range volumes {
		size, err := v.length(ctx)
		if err != nil {
			return nil, backends.Errorf(classify(err), "volume %q: %w", v.record.Load().Handle, err)
		}
		member := e.newSnapshotRecord(memberHandle(handle, i), spec.Name+"/"+strconv.Itoa(i), v, size)
		member.CreatedAt = record.CreatedAt
		record.Members = append(record.Members, *member)
	}
	return record, nil
}
