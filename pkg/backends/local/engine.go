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
	"github.com/stowage-csi/stowage/pkg/secret"
	"github.com/stowage-csi/stowage/pkg/spare"
)

// engine is the running backend, controller and node in one. All of its state is also on disk.
type engine struct {
	node        string                    // this node's ID
	place       backends.Topology         // the topology of all volumes and snapshots
	boot        string                    // this boot's ID
	freezeLimit time.Duration             // how long a filesystem may be kept frozen
	log         *slog.Logger              //
	dataDir     string                    //
	lock        *os.File                  // keeps other processes out of the data directory
	spareRoom   *spare.Room               // for notes, when the data directory is full
	pools       []*pool                   // in the order of the configuration, including pools that are not served
	stock       *stock                    // the contents of the pools
	waiting     *waiting                  // for filesystems that may not answer
	now         func() time.Time          // for the time of creation
	copying     func(ctx context.Context) // called before each copy of an image or a directory; may be nil
	making      works                     // work that outlives its call
	disks       *disks                    // what pools share

	life context.Context // ends with Close; background work belongs to no request
	stop context.CancelFunc
	work background.Group // in the background

	mu    sync.Mutex
	paths map[string]string     // the paths that pools have or are about to have, without symbolic links
	left  map[string]*knownPool // pools that were served before and are not in the configuration
}

// grouping is an engine with pools that can copy volumes at one instant, and so take group snapshots. An engine without
// such pools does not offer them, because it would always refuse them.
type grouping struct{ *engine }

// served returns the pools that can be used.
func (e *engine) served() []*pool {
	return slices.DeleteFunc(slices.Clone(e.pools), func(p *pool) bool { return !p.served() })
}

// pool returns a pool. Kinds: Unavailable for a pool that is not served; Invalid, naming the pools that exist.
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
	return nil, backends.Errorf(backends.Invalid, "there is no pool %q on this node: use %s", secret.Option(name),
		strings.Join(names, " or "))
}
