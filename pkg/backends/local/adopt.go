package local

import (
	"context"
	"errors"
	"strings"
)

// serve opens a pool, takes in what it holds, and serves it from then on. Kinds: Invalid when the configuration is
// wrong; Busy when another process has it; else Unavailable or what the kernel says: it may be tried again.
func (e *engine) serve(ctx context.Context, p *pool) error {
	if err := p.occupy(e); err != nil {
		return err
	}
	c, err := e.load(ctx, p)
	if err != nil {
		// What may still write keeps the lock, however long that takes.
		return errors.Join(err, p.janitor.end(context.WithoutCancel(ctx)), p.leave())
	}
	e.enlist(p, c)
	e.adopt(p, c)
	for _, s := range e.shelves() {
		s.settlePool(p.name)
	}
	e.settleOwing(p.name)
	e.recognize(p)
	p.trouble.Store(nil)
	return nil
}

// enlist makes the pool's index that of what was found. Snapshots that the index has and that were not found may be
// members of a group that cannot be read.
func (e *engine) enlist(p *pool, c *contents) {
	extra, err := p.index.complete(c.handles(), p.path)
	if err != nil {
		p.log.Warn("the index of the pool could not be written: should the pool be missing, it is not known what is in it",
			"error", err)
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

// adopt puts what was found in a pool on the shelves and on its ledger.
func (e *engine) adopt(p *pool, c *contents) {
	for handle, a := range c.away {
		e.shelfOf(handle).exclude(handle, a)
	}
	conflict := func(a *away) {
		if a != nil {
			p.log.Error("one name is taken in two pools: neither can be used", "why", a.why)
		}
	}
	for _, v := range c.volumes {
		r := v.record.Load()
		p.ledger.add(v.taken)
		conflict(e.volumes.adopt(r.Handle, v, p.name, v.dir))
	}
	for _, s := range c.snapshots {
		p.ledger.add(p.kind.cost(s.record.SizeBytes))
		conflict(e.snapshots.adopt(s.record.Handle, s, p.name, s.dir))
	}
	for _, g := range c.groups {
		p.ledger.add(g.record.cost())
		for _, m := range g.members {
			conflict(e.snapshots.adopt(m.record.Handle, m, p.name, m.dir))
		}
		conflict(e.groups.adopt(g.record.Handle, g, p.name, g.dir))
	}
}

// excluder is as much of a shelf as does not depend on its items.
type excluder interface {
	exclude(handle string, a *away)
	readmit(handle string)
	doubt(a *away)
	settlePool(pool string)
	awayFrom(pool string) map[string]*away
}

func (e *engine) shelves() []excluder { return []excluder{e.volumes, e.snapshots, e.groups} }

// shelfOf is the shelf for handles like this one.
func (e *engine) shelfOf(handle string) excluder {
	switch {
	case strings.HasPrefix(handle, snapshotPrefix):
		return e.snapshots
	case strings.HasPrefix(handle, groupPrefix):
		return e.groups
	}
	return e.volumes
}
