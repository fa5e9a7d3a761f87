package local

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/durable"
)

// group is a group of snapshots that exists. It never changes.
type group struct {
	*guard
	pool    *pool
	dir     string // its folder
	record  *groupRecord
	members []*snapshot
}

// newGroup makes the group and its members of what the record says.
func newGroup(p *pool, dir string, record *groupRecord) *group {
	g := &group{guard: newGuard(), pool: p, dir: dir, record: record}
	for i := range record.Members {
		member := filepath.Join(dir, strconv.Itoa(i))
		g.members = append(g.members, newSnapshot(p, member, &record.Members[i], record.Handle))
	}
	return g
}

// cost is what the group takes from the ledger.
func (r *groupRecord) cost() int64 {
	var sum int64
	for _, m := range r.Members {
		sum += m.Type.cost(m.SizeBytes)
	}
	return sum
}

func (e *engine) describeGroup(g *group) *backends.Group {
	result := &backends.Group{Handle: g.record.Handle, Name: g.record.Name, CreatedAt: g.record.CreatedAt}
	for _, m := range g.members {
		result.Snapshots = append(result.Snapshots, *e.describeSnapshot(m))
	}
	return result
}

// shelve makes the group and its members known.
func (e *engine) shelve(g *group) {
	for _, m := range g.members {
		e.snapshots.settle(m.record.Handle, m)
	}
	e.groups.settle(g.record.Handle, g)
}

// CreateGroup takes snapshots of several images of one pool at one instant. Kinds: Exists; NotFound; InUse
// when the use of an image rules that out; Invalid for volumes that are directories, which have no such
// instant, that are in different pools, which have no single step in which all snapshots come to be, or that
// are named twice; Exhausted; Busy.
func (e *grouping) CreateGroup(ctx context.Context, spec backends.GroupSpec) (result *backends.Group, err error) {
	defer annotate(&err, "create group", spec.Name)
	handle := handleOf(groupPrefix, spec.Name)
	if err := e.groups.reserve(handle); err != nil {
		return nil, err
	}
	g, err := e.makeGroup(ctx, handle, spec)
	if err != nil {
		e.groups.abandon(handle)
		return nil, err
	}
	e.shelve(g)
	return e.describeGroup(g), nil
}

func (e *grouping) makeGroup(ctx context.Context, handle string, spec backends.GroupSpec) (*group, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkName(spec.Name); err != nil {
		return nil, err
	}
	volumes, err := e.groupVolumes(spec.Volumes)
	if err != nil {
		return nil, err
	}
	release, err := holdAll(ctx, volumes)
	if err != nil {
		return nil, err
	}
	defer release()
	record := e.newGroupRecord(handle, spec.Name, volumes)
	p := volumes[0].pool
	if err := p.take(ctx, record.cost()); err != nil {
		return nil, err
	}
	d, err := p.newDraft(handle)
	if err != nil {
		p.ledger.give(record.cost())
		return nil, err
	}
	path, err := e.buildGroup(ctx, d, record, volumes)
	if err != nil {
		d.discard(record.cost())
		return nil, err
	}
	return newGroup(p, path, record), nil
}

// groupVolumes looks the volumes up and refuses those that cannot be in a group together.
func (e *grouping) groupVolumes(handles []string) ([]*volume, error) {
	if len(handles) == 0 {
		return nil, backends.Errorf(backends.Invalid, "the group names no volume: name at least one")
	}
	var volumes []*volume
	for i, handle := range handles {
		if slices.Contains(handles[:i], handle) {
			return nil, backends.Errorf(backends.Invalid, "volume %q is named twice: name it once", handle)
		}
		v, err := e.volumes.get(handle)
		if err != nil {
			return nil, backends.Errorf(classify(err), "volume %q: %w", handle, err)
		}
		if v.pool.kind != image {
			return nil, backends.Errorf(backends.Invalid,
				"volume %s is a directory, whose copy is not of one instant: only volumes of pools of type image can be in a group", handle)
		}
		volumes = append(volumes, v)
		if first := volumes[0]; v.pool != first.pool {
			return nil, backends.Errorf(backends.Invalid, "volumes %s and %s are in the pools %q and %q: a group must be of one pool",
				handles[0], handle, first.pool.name, v.pool.name)
		}
	}
	return volumes, nil
}

// holdAll holds all volumes, in the order of their handles: two groups never wait for each other.
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

func (e *grouping) newGroupRecord(handle, name string, volumes []*volume) *groupRecord {
	record := &groupRecord{Version: recordVersion, Handle: handle, Name: name, CreatedAt: e.now().UTC().Round(0)}
	for i, v := range volumes {
		member := e.newSnapshotRecord(memberHandle(handle, i), name+"/"+strconv.Itoa(i), v)
		member.CreatedAt = record.CreatedAt
		record.Members = append(record.Members, *member)
	}
	return record
}

func (e *grouping) buildGroup(ctx context.Context, d *draft, record *groupRecord, volumes []*volume) (string, error) {
	var copies []imageCopy
	for i, v := range volumes {
		dir := filepath.Join(d.path, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", err
		}
		to := filepath.Join(dir, image.dataName())
		copies = append(copies, imageCopy{from: v.data(), volume: v, to: to, size: record.Members[i].SizeBytes})
	}
	if err := e.copyImages(ctx, copies); err != nil {
		return "", err
	}
	for _, c := range copies {
		if err := durable.SyncFile(c.to); err != nil {
			return "", err
		}
		if err := durable.SyncDir(filepath.Dir(c.to)); err != nil {
			return "", err
		}
	}
	return d.publish(ctx, groupsFolder, record)
}

// FindGroup returns the group of that name. Kinds: NotFound.
func (e *grouping) FindGroup(_ context.Context, name string) (result *backends.Group, err error) {
	defer annotate(&err, "find group", name)
	g, err := e.groups.get(handleOf(groupPrefix, name))
	if err != nil {
		return nil, err
	}
	return e.describeGroup(g), nil
}

// GetGroup returns the group with the handle. Kinds: NotFound.
func (e *grouping) GetGroup(_ context.Context, handle string) (result *backends.Group, err error) {
	defer annotate(&err, "get group", handle)
	g, err := e.groups.get(handle)
	if err != nil {
		return nil, err
	}
	return e.describeGroup(g), nil
}

// DeleteGroup removes a group with all its snapshots. Kinds: NotFound; Busy.
func (e *grouping) DeleteGroup(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete group", handle)
	g, err := e.groups.get(handle)
	if err != nil {
		return err
	}
	release, err := g.ownAll(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := g.pool.delete(g.dir, g.record.cost()); err != nil {
		return err
	}
	g.gone.Store(true)
	e.groups.remove(handle)
	for _, m := range g.members {
		m.gone.Store(true)
		e.snapshots.remove(m.record.Handle)
	}
	return nil
}

// ownAll owns the group and then its members, which others may be restoring from.
func (g *group) ownAll(ctx context.Context) (release func(), err error) {
	release, err = g.own(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range g.members {
		next, err := m.own(ctx)
		if err != nil {
			release()
			return nil, err
		}
		before := release
		release = func() { next(); before() }
	}
	return release, nil
}
