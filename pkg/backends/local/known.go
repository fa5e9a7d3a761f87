package local

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/stowage-csi/stowage/pkg/durable"
)

// knownPool is the data directory's record of a pool that was served before.
type knownPool struct {
	name     string
	id       string   // empty if it cannot be read
	poolType poolType // empty if it cannot be read
	path     string   // the last known path; empty if none was recorded
	handles  []string // the handles that it may hold
	complete bool     // whether it holds no other handles
}

// isKnown reports whether the pool was served before.
func (k *knownPool) isKnown() bool { return k.id != "" }

// isEmpty reports whether the pool is known to hold nothing, so that its absence does not matter.
func (k *knownPool) isEmpty() bool { return k.complete && len(k.handles) == 0 }

// why says why the pool is not served.
func (k *knownPool) why() error {
	where := ""
	if k.path != "" {
		where = ", which was in " + k.path + ","
	}
	return fmt.Errorf("pool %q%s is not in the configuration any more: configure it again, "+
		"or name it under retired to give up what is in it", k.name, where)
}

// knownPools returns all pools that were ever served and not forgotten.
func (e *engine) knownPools() ([]*knownPool, error) {
	entries, err := os.ReadDir(filepath.Join(e.dataDir, knownFolder))
	if err != nil {
		return nil, err
	}
	var pools []*knownPool
	for _, entry := range entries {
		if isPoolName(entry.Name()) { // Other names are drafts.
			pools = append(pools, e.knownPool(entry.Name()))
		}
	}
	return pools, nil
}

// knownPool returns what is known of a pool. What cannot be read counts as unknown.
func (e *engine) knownPool(name string) *knownPool {
	k := &knownPool{name: name}
	if record, err := readPoolRecord(filepath.Join(e.dataDir, knownFolder, name)); err == nil && record != nil {
		k.id, k.poolType = record.ID, record.Type
	}
	handles, path, err := indexOf(e.dataDir, name).read()
	if err != nil {
		e.log.Warn("the index of a pool could not be read", "pool", name, "error", err)
	}
	k.handles, k.path, k.complete = handles, path, err == nil && path != ""
	return k
}

// scan looks for the pool's contents at its last or default path. Older versions of the driver kept no index.
func (e *engine) scan(k *knownPool) {
	p := &pool{path: cmp.Or(k.path, filepath.Join(e.dataDir, poolsFolder, k.name)), storage: k.poolType.storage()}
	var owes owing
	var handles []string
	is, err := look(e.life, e.waiting, p.path, func() bool {
		if !p.is(k.id) {
			return false
		}
		owes, handles = p.owesAll(), p.list()
		return true
	})
	if err != nil || !is {
		return
	}
	e.disks.noteOwing(k.name, owes)
	if handles == nil {
		return
	}
	k.path, k.handles, k.complete = p.path, append(k.handles, without(handles, k.handles)...), true
}

// is reports whether the pool with this identity is at the path.
func (p *pool) is(id string) bool {
	record, err := readPoolRecord(filepath.Join(p.path, poolFile))
	return err == nil && record != nil && record.ID == id
}

// list returns the handles of everything in the pool's folders, including members of groups; nil if they cannot be
// read.
func (p *pool) list() []string {
	handles := []string{}
	for _, folder := range entryFolders() {
		entries, err := os.ReadDir(p.folder(folder))
		if err != nil {
			return nil
		}
		for _, entry := range entries {
			handles = append(handles, entry.Name())
			if folder != groupsFolder {
				continue
			}
			found, err := p.read(folder, entry.Name())
			if err != nil {
				return nil
			}
			handles = append(handles, found.handles()...)
		}
	}
	return handles
}

// leftPool returns the pool of this name that is no longer in the configuration, or nil.
func (e *engine) leftPool(name string) *knownPool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left[name]
}

// leftPools returns all pools that are no longer in the configuration, in the order of their names.
func (e *engine) leftPools() []*knownPool {
	e.mu.Lock()
	defer e.mu.Unlock()
	var pools []*knownPool
	for _, k := range e.left {
		pools = append(pools, k)
	}
	slices.SortFunc(pools, func(a, b *knownPool) int { return cmp.Compare(a.name, b.name) })
	return pools
}

// noteKnown notes, before any pool is opened, all that was ever served and not deleted. What is not found again is
// away.
func (e *engine) noteKnown(s settings) error {
	known, err := e.knownPools()
	if err != nil {
		return err
	}
	for _, k := range known {
		if slices.Contains(s.retired, k.name) {
			err := e.forget(k.name)
			e.log.Warn("a pool is retired: what is in it is forgotten, and was not touched", "pool", k.name, "path", k.path,
				"error", err)
			continue
		}
		configured := slices.IndexFunc(e.pools, func(p *pool) bool { return p.name == k.name })
		if configured >= 0 {
			e.exclude(k, e.pools[configured].trouble.Load())
			continue
		}
		e.scan(k)
		e.left[k.name] = k
		e.exclude(k, &away{pool: k.name, reason: poolNotConfigured, why: k.why()})
	}
	return nil
}

// exclude records that the contents of a pool cannot be used.
func (e *engine) exclude(k *knownPool, a *away) {
	for _, handle := range k.handles {
		e.stock.shelfOf(handle).exclude(handle, a)
	}
	if !k.complete {
		for _, s := range e.stock.shelves() {
			s.doubt(a)
		}
	}
}

// recognize forgets the former name of a pool that was just opened under another.
func (e *engine) recognize(p *pool) {
	for _, k := range e.leftPools() {
		if k.id != p.id {
			continue
		}
		p.log.Info("the pool had another name before", "former", k.name)
		e.mu.Lock()
		delete(e.left, k.name)
		e.mu.Unlock()
		e.disks.settleOwing(k.name)
		for _, s := range e.stock.shelves() {
			s.settlePool(k.name)
		}
		if err := e.forget(k.name); err != nil {
			p.log.Warn("the former name of the pool could not be forgotten: the next start tries again", "former", k.name,
				"error", err)
		}
	}
}

// forget removes the data directory's records of a pool, and does not touch the pool. The identity goes last, so that
// the pool stays known as long as any record remains.
func (e *engine) forget(name string) error {
	if err := os.RemoveAll(indexOf(e.dataDir, name).dir); err != nil {
		return err
	}
	known := filepath.Join(e.dataDir, knownFolder)
	if err := os.Remove(filepath.Join(known, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return durable.SyncDir(known)
}
