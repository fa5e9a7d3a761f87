package local

import (
	"context"
	"maps"
	"path/filepath"
	"sync"
)

// owing is how much a pool that is not served may still take of its filesystem: pods still write to its volumes.
type owing struct {
	disk  diskID
	bytes int64
}

// owes is how many bytes the data in an entry's folder may still take. It is for entries without an item on a shelf.
func (p *pool) owes(dir string) int64 { return p.storage.owes(dir, p.costOfTrash) }

// owesAll is the sum over all entries of a pool that is not served; nothing if they cannot be read.
func (p *pool) owesAll() owing {
	id, err := diskOf(p.path)
	if err != nil {
		return owing{}
	}
	kept, result := p.asKept(), owing{disk: id}
	for _, folder := range entryFolders() {
		for dir := range p.entries(folder) {
			result.bytes += kept.owes(dir)
		}
	}
	return result
}

// foresee notes what each pool owes before the first is served, which would otherwise promise the room of later ones. A
// pool that does not answer is assumed to be on none of the filesystems that do.
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

// asConfigured returns the part of the pool that is known before it is opened.
func (p *pool) asConfigured() *pool { return &pool{path: p.settings.path, storage: p.storage} }

// asKept returns the part of the pool that is known before it is opened, with the type that its directory records. The
// configuration may name another one: such a pool is not served.
func (p *pool) asKept() *pool {
	record, err := readPoolRecord(filepath.Join(p.path, poolFile))
	if err != nil || record == nil {
		return p
	}
	return &pool{path: p.path, storage: record.Type.storage()}
}

// noteOwing records what a pool that is not served owes.
func (ds *disks) noteOwing(pool string, o owing) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.unserved[pool] = o
}

// settleOwing removes that record: the pool's ledger counts from now on.
func (ds *disks) settleOwing(pool string) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	delete(ds.unserved, pool)
}

// unservedOn is how many bytes the pools that are not served owe on a filesystem.
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

// owesAway is how many bytes the unusable entries of a pool owe.
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
