package local

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/spare"
)

// engine is the backend at work, controller and node in one. It keeps no state but what is on disk too.
type engine struct {
	node        string                    // this node's ID
	place       backends.Topology         // where all volumes and snapshots are
	boot        string                    // this boot's ID
	freezeLimit time.Duration             // how long a filesystem may be kept frozen
	log         *slog.Logger              //
	dataDir     string                    //
	lock        *os.File                  // keeps other processes out of the data directory
	spareRoom   *spare.Room               // for notes, when that is full
	pools       []*pool                   // in the order of the configuration, those that are not served too
	stock       *stock                    // what is in the pools
	waiting     *waiting                  // for what may not answer
	now         func() time.Time          // for the time of creation
	copying     func(ctx context.Context) // is called before each copy of an image or a directory; may be nil
	making      works                     // what outlives its call
	disks       *disks                    // what pools share

	life context.Context // ends with Close; the work in the background is no request's
	stop context.CancelFunc
	work background.Group // in the background

	mu    sync.Mutex
	paths map[string]string     // where pools are that were opened, without symbolic links
	left  map[string]*knownPool // pools that were served before and that the configuration does not name
}

// grouping is an engine that has pools whose volumes can be copied at one instant, and so can take snapshots of groups.
// An engine without any does not offer what it would always refuse.
type grouping struct{ *engine }

// served are the pools that can be used.
func (e *engine) served() []*pool {
	return slices.DeleteFunc(slices.Clone(e.pools), func(p *pool) bool { return !p.served() })
}

// pool looks for a pool. Kinds: Unavailable for one that is not served; Invalid, naming those that there are.
func (e *engine) pool(name string) (*pool, error) {
	names := make([]string, len(e.pools))
	for i, p := range e.pools {
		if p.name != name {
			names[i] = p.name
			continue
		}
		if a := p.trouble.Load(); a != nil {
			return nil, backends.Errorf(backends.Unavailable, "pool %q cannot be used now: %w", name, a.why)
		}
		return p, nil
	}
	if k := e.leftPool(name); k != nil {
		return nil, backends.Errorf(backends.Unavailable, "pool %q cannot be used: %w", name, k.why())
	}
	return nil, backends.Errorf(backends.Invalid, "there is no pool %q on this node: use %s", name,
		strings.Join(names, " or "))
}

// situate notes where a pool is, unless it would get into another's way. Kinds: Invalid.
func (e *engine) situate(p *pool, path string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, other := range e.paths {
		if name != p.name && (safepath.Within(other, path) || safepath.Within(path, other)) {
			return nested(name, p.name, other, path)
		}
	}
	if err := checkOutside(p.name, path, e.dataDir); err != nil {
		return err
	}
	e.paths[p.name] = path
	return nil
}
