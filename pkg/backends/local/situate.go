package local

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/stowage-csi/stowage/pkg/safepath"
)

// claimPaths situates the pools before any is opened, in a fixed order: those that were served before come first. So of
// two pools that overlap, the same one is served at each start, and a new pool does not displace one with volumes. A
// pool whose path does not exist or does not answer claims it when it is opened.
func (e *engine) claimPaths(ctx context.Context) {
	if len(e.pools) < 2 {
		return
	}
	paths := make([]string, len(e.pools))
	var asked sync.WaitGroup
	for i, p := range e.pools {
		asked.Go(func() {
			paths[i], _ = look(ctx, e.waiting, p.settings.path, func() string { // see above
				path, _ := filepath.EvalSymlinks(p.settings.path)
				return path
			})
		})
	}
	asked.Wait()
	for _, known := range []bool{true, false} {
		for i, p := range e.pools {
			if paths[i] != "" && e.knownPool(p.name).isKnown() == known {
				_ = e.situate(p, paths[i]) // If it is refused, so is the pool when it is opened.
			}
		}
	}
}

// situate records where a pool is, unless it overlaps with another one. A pool that is refused claims no path. Kinds:
// Invalid.
func (e *engine) situate(p *pool, path string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.paths, p.name)
	for name, other := range e.paths {
		if safepath.Within(other, path) || safepath.Within(path, other) {
			return nested(name, p.name, other, path)
		}
	}
	if err := checkOutside(p.name, path, e.dataDir); err != nil {
		return err
	}
	e.paths[p.name] = path
	return nil
}

// vacate lets other pools have the path of a pool that is refused and was never served: it may be a mistake in the
// configuration. A pool that was served before keeps its path for its return.
func (e *engine) vacate(k *knownPool) {
	if k.isKnown() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.paths, k.name)
}
