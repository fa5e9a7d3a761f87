package local

import (
	"context"
	"maps"
	"sync"
)

// owing is what a pool that is not served may still take of its filesystem: pods that have its volumes write on.
type owing struct {
	disk  diskID
	bytes int64
}

// owes is how many bytes what is in the folder of an entry may still take that is on no shelf.
func (p *pool) owes(dir string) int64 { return p.storage.owes(dir, p.costOfTrash) }

// owesAll is what all entries of a pool owe that is not served; nothing where they cannot be read.
func (p *pool) owesAll() owing {
	id, err := diskOf(p.path)
	if err != nil {
		return owing{}
	}
	result := owing{disk: id}
	for _, folder := range entryFolders() {
		for dir := range p.entries(folder) {
			result.bytes += p.owes(dir)
		}
	}
	return result
}

// foresee notes what each pool owes before the first of them is served, which would promise the room of those that
// come after it. One that does not answer is on none of the filesystems that do, as far as anybody can tell.
func (ds *disks) foresee(ctx context.Context, pools []*pool) {
	if len(pools) < 2 {
		return
	}
	var asked sync.WaitGroup
	for _, p := range pools {
		asked.Go(func() {
			if owes, err := look(ctx, ds.waiting, p.settings.path, p.asConfigured().owesAll); err == nil {
				ds.noteOwing(p.name, owes)
			}
		})
	}
	asked.Wait()
}

// asConfigured is as much of the pool as is known before it is opened.
func (p *pool) asConfigured() *pool { return &pool{path: p.settings.path, storage: p.storage} }

// noteOwing notes what a pool owes that is not served.
func (ds *disks) noteOwing(pool string, o owing) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.unserved[pool] = o
}

// settleOwing ends that: its ledger counts from now on.
func (ds *disks) settleOwing(pool string) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	delete(ds.unserved, pool)
}

// unservedOn is what is owed on a filesystem by pools that are not served.
func (ds *disks) unservedOn(id diskID) (sum int64) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for o := range maps.Values(ds.unserved) {
		if o.disk == id {
			sum += o.bytes
		}
	}
	return sum
}

// owesAway is what is owed by the entries of a pool that cannot be used.
func (s *stock) owesAway(p *pool) (sum int64) {
	for _, shelf := range s.shelves() {
		for name, a := range shelf.awayFrom(p.name) {
			if a.folder != "" {
				sum += p.owes(p.entry(a.folder, name))
			}
		}
	}
	return sum
}
