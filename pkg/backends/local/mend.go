package local

import (
	"errors"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// mendEvery is how often failed steps are retried.
const mendEvery = 10 * time.Second

// watch retries failed steps until the engine is closed.
func (e *engine) watch() {
	tick := time.NewTicker(mendEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, p := range e.pools {
				e.tend(p)
			}
		case <-e.life.Done():
			return
		}
	}
}

// tend opens a pool, or repairs an open one. It works in the background, once at a time for each pool, so that one that
// hangs delays no other. The channel is closed at the end of the work. It is nil if the pool is already being tended.
func (e *engine) tend(p *pool) <-chan struct{} {
	if !p.mending.CompareAndSwap(false, true) {
		return nil
	}
	ended := make(chan struct{})
	e.work.Go(fmt.Sprintf("pool %q: opening it, or making it well", p.name), func() {
		defer close(ended)
		defer p.mending.Store(false)
		if p.served() {
			e.mend(p)
			return
		}
		err := e.serve(e.life, p)
		if err != nil {
			err = backends.Errorf(classify(err), "pool %q in %s cannot be used: %w", p.name, p.settings.path,
				failure.OneLine(err))
			e.refuse(p, err)
		}
	})
	return ended
}

// refuse records why a pool is not served, and logs that once.
func (e *engine) refuse(p *pool, err error) {
	p.fails(err)
	k := e.knownPool(p.name)
	e.exclude(k, p.trouble.Load())
	e.vacate(k)
	e.disks.noteOwing(p.name, p.asConfigured().owesAll())
	if !p.told && e.life.Err() == nil {
		p.told = true
		p.log.Error("a pool cannot be used: all others are served, and it is tried again", "path", p.settings.path, "error",
			err)
	}
}

// mend retries failed steps in a pool that is served.
func (e *engine) mend(p *pool) {
	if p.problem() != nil {
		return
	}
	if !p.probed.Load() {
		p.probe()
	}
	if len(p.drafts) > 0 {
		p.discardDrafts()
	}
	p.janitor.again()
	for _, s := range e.stock.shelves() {
		for name, a := range s.awayFrom(p.name) {
			if a.folder != "" && !e.stock.isMade(name) && e.life.Err() == nil {
				e.mendEntry(p, s, name, a)
			}
		}
	}
	e.clearReleased(p)
	e.thawAgain(p)
}

// mendEntry rereads an entry that could not be read.
func (e *engine) mendEntry(p *pool, s excluder, name string, before *away) {
	found, err := p.read(before.folder, name)
	if err == nil {
		err = e.repairVolumes(e.life, found, &report{})
	}
	_, foreign := errors.AsType[notOurs](err)
	switch {
	case foreign && p.quarantine(before.folder, name, err) == nil, p.lacks(p.entry(before.folder, name)):
		p.index.drop(name)
		s.readmit(name)
		e.readmitMembers(p, name)
	// A loss of power must not undo the move of an acknowledged item.
	case err == nil && len(found.away) == 0 && durable.SyncDir(p.folder(before.folder)) == nil:
		e.adoptWhole(p, found)
		p.log.Info("something can be used again", "entry", before.folder+"/"+name)
	}
}

// adoptWhole calls adopt while no decision about room runs. A decision reads the ledgers first, and then the unusable
// entries, and would miss an entry that changed sides in between.
func (e *engine) adoptWhole(p *pool, c *contents) {
	p.ledger.disk.deciding.Lock()
	defer p.ledger.disk.deciding.Unlock()
	e.stock.adopt(p, c)
}

// readmitMembers readmits the members of a group that is gone. Their handles follow from its own.
func (e *engine) readmitMembers(p *pool, group string) {
	for i := 0; ; i++ {
		member := memberHandle(group, i)
		if e.stock.snapshots.awayOf(member) == nil {
			return
		}
		p.index.drop(member)
		e.stock.snapshots.readmit(member)
	}
}
