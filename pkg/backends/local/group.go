package local

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// group is a group of snapshots that exists. It never changes.
type group struct {
	*guard
	pool    *pool
	dir     string // its folder
	record  *groupRecord
	members []*snapshot
}

// newGroup creates the group and its members from the record.
func newGroup(p *pool, dir string, record *groupRecord) *group {
	g := &group{guard: newGuard(), pool: p, dir: dir, record: record}
	for i := range record.Members {
		member := filepath.Join(dir, strconv.Itoa(i))
		g.members = append(g.members, newSnapshot(p, member, &record.Members[i], record.Handle))
	}
	return g
}

// cost is how many bytes the group takes from the ledger.
func (r *groupRecord) cost() int64 {
	var sum int64
	for _, m := range r.Members {
		sum += m.Type.storage().cost(m.SizeBytes)
	}
	return sum
}

// handles returns the handles of the group and of its members.
func (r *groupRecord) handles() []string {
	handles := []string{r.Handle}
	for _, m := range r.Members {
		handles = append(handles, m.Handle)
	}
	return handles
}

func (e *engine) describeGroup(g *group) *backends.Group {
	result := &backends.Group{Handle: g.record.Handle, Name: g.record.Name, CreatedAt: g.record.CreatedAt,
		Fingerprint: g.record.Fingerprint}
	for _, m := range g.members {
		result.Snapshots = append(result.Snapshots, *e.describeSnapshot(m))
	}
	return result
}

// FindGroup returns the group of that name. Kinds: NotFound.
func (e *grouping) FindGroup(_ context.Context, name string) (result *backends.Group, err error) {
	defer annotate(&err, "find group", name)
	g, err := e.stock.groups.get(handleOf(groupPrefix, name))
	if err != nil {
		return nil, err
	}
	return e.describeGroup(g), nil
}

// GetGroup returns the group with the handle. Kinds: NotFound.
func (e *grouping) GetGroup(_ context.Context, handle string) (result *backends.Group, err error) {
	defer annotate(&err, "get group", handle)
	g, err := e.stock.groups.get(handle)
	if err != nil {
		return nil, err
	}
	return e.describeGroup(g), nil
}

// ownAll owns the group and then its members, which restores may be reading.
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
