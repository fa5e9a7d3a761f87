package local

import "strings"

// excluder is as much of a shelf as does not depend on its items.
type excluder interface {
	exclude(handle string, a *away)
	readmit(handle string)
	doubt(a *away)
	settlePool(pool string)
	awayFrom(pool string) map[string]*away
}

// stock is what is in the pools, by handle.
type stock struct {
	volumes   *shelf[*volume]
	snapshots *shelf[*snapshot] // those of groups too
	groups    *shelf[*group]
}

func newStock() *stock {
	return &stock{newShelf[*volume]("volume"), newShelf[*snapshot]("snapshot"), newShelf[*group]("group")}
}

func (s *stock) shelves() []excluder { return []excluder{s.volumes, s.snapshots, s.groups} }

// shelfOf is the shelf for handles like this one.
func (s *stock) shelfOf(handle string) excluder {
	switch {
	case strings.HasPrefix(handle, snapshotPrefix):
		return s.snapshots
	case strings.HasPrefix(handle, groupPrefix):
		return s.groups
	}
	return s.volumes
}

// shelve makes the group and its members known.
func (s *stock) shelve(g *group) {
	for _, m := range g.members {
		s.snapshots.settle(m.record.Handle, m)
	}
	s.groups.settle(g.record.Handle, g)
}

// isMade reports whether something is being made under the handle, or was until just now: who has failed to make what
// is in its place all the same still has the handle. While that is away nobody else gets it.
func (s *stock) isMade(handle string) bool {
	return s.volumes.isMade(handle) || s.snapshots.isMade(handle) || s.groups.isMade(handle)
}
