package local

import "strings"

// excluder has the methods of a shelf that do not depend on the type of its items.
type excluder interface {
	exclude(handle string, a *away)
	readmit(handle string)
	doubt(a *away)
	settlePool(pool string)
	awayFrom(pool string) map[string]*away
}

// stock has the contents of the pools, by handle.
type stock struct {
	volumes   *shelf[*volume]
	snapshots *shelf[*snapshot] // including those of groups
	groups    *shelf[*group]
}

func newStock() *stock {
	return &stock{newShelf[*volume]("volume"), newShelf[*snapshot]("snapshot"), newShelf[*group]("group")}
}

func (s *stock) shelves() []excluder { return []excluder{s.volumes, s.snapshots, s.groups} }

// shelfOf returns the shelf for handles of this kind.
func (s *stock) shelfOf(handle string) excluder {
	switch {
	case strings.HasPrefix(handle, snapshotPrefix):
		return s.snapshots
	case strings.HasPrefix(handle, groupPrefix):
		return s.groups
	}
	return s.volumes
}

// shelve puts the group and its members on their shelves.
func (s *stock) shelve(g *group) {
	for _, m := range g.members {
		s.snapshots.settle(m.record.Handle, m)
	}
	s.groups.settle(g.record.Handle, g)
}

// isMade reports whether an item with the handle is being created. A failed creation whose item may be in its final
// place keeps the handle until it returns. While the item is away, no other gets the handle.
func (s *stock) isMade(handle string) bool {
	return s.volumes.isMade(handle) || s.snapshots.isMade(handle) || s.groups.isMade(handle)
}
