package local

import (
	"context"
	"errors"
	"strings"
)

// serve opens a pool, adopts its contents and serves it from then on. The caller may retry after every error. Kinds:
// Invalid when the configuration is wrong; Busy when another process has the pool; else Unavailable or what the kernel
// says.
func (e *engine) serve(ctx context.Context, p *pool) error {
	path, err := p.locate()
	if err != nil {
		return err
	}
	if err := e.situate(p, path); err != nil {
		return err
	}
	if err := p.occupy(path, e.dataDir, e.disks); err != nil {
		return err
	}
	c, err := e.load(ctx, p)
	if err != nil {
		// Work that may still write keeps the lock, however long that takes.
		return errors.Join(err, p.janitor.end(context.WithoutCancel(ctx)), p.leave())
	}
	e.enlist(p, c)
	e.stock.adopt(p, c)
	for _, s := range e.stock.shelves() {
		s.settlePool(p.name)
	}
	e.disks.settleOwing(p.name)
	e.recognize(p)
	p.trouble.Store(nil)
	return nil
}

// enlist updates the pool's index to the contents that were found. Snapshots that are in the index and were not found
// may be members of a group that cannot be read.
func (e *engine) enlist(p *pool, c *contents) {
	extra, err := p.index.complete(c.handles(), p.path)
	if err != nil {
		p.log.Warn("the index of the pool could not be written: should the pool be missing, it is not known what is in it",
			"error", err)
	}
	for _, record := range c.records() {
		p.index.describeAll(record)
	}
	var unread *away
	for handle, a := range c.away {
		if strings.HasPrefix(handle, groupPrefix) {
			unread = a
		}
	}
	for _, handle := range extra {
		if unread == nil || !strings.HasPrefix(handle, snapshotPrefix) {
			p.index.drop(handle)
			continue
		}
		c.away[handle] = &away{pool: p.name, reason: unread.reason, why: unread.why}
	}
}

// adopt puts the contents of a pool on the shelves and counts them in its ledger.
func (s *stock) adopt(p *pool, c *contents) {
	for handle, a := range c.away {
		s.shelfOf(handle).exclude(handle, a)
	}
	conflict := func(a *away) {
		if a != nil {
			p.log.Error("one name is taken in two pools: neither can be used", "why", a.why)
		}
	}
	for _, v := range c.volumes {
		r := v.record.Load()
		p.ledger.add(v.taken)
		conflict(s.volumes.adopt(r.Handle, v, p.name, v.dir))
	}
	for _, one := range c.snapshots {
		p.ledger.add(p.storage.cost(one.record.SizeBytes))
		conflict(s.snapshots.adopt(one.record.Handle, one, p.name, one.dir))
	}
	for _, g := range c.groups {
		p.ledger.add(g.record.cost())
		for _, m := range g.members {
			conflict(s.snapshots.adopt(m.record.Handle, m, p.name, m.dir))
		}
		conflict(s.groups.adopt(g.record.Handle, g, p.name, g.dir))
	}
}
