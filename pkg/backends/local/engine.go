package local

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/deadline"
)

// engine is the backend at work, controller and node in one. It keeps no state but what is on disk too.
type engine struct {
	node        string            // this node's ID
	place       backends.Topology // where all volumes and snapshots are
	boot        string            // this boot's ID
	freezeLimit time.Duration     // how long a filesystem may be kept frozen
	log         *slog.Logger      //
	dataDir     string            //
	lock        *os.File          // keeps other processes out of the data directory
	pools       []*pool           // in the order of the configuration
	volumes     *shelf[*volume]   //
	snapshots   *shelf[*snapshot] // those of groups too
	groups      *shelf[*group]    //
	now         func() time.Time  // for the time of creation
	calls       deadline.Calls    // what was given up and still runs
	making      works             // what outlives its call
	disks       *disks            // what pools share
	measuring   *background.Works[struct{}]
}

// grouping is an engine that has pools of type image, and so can take snapshots of groups. An engine
// without any does not offer what it would always refuse.
type grouping struct{ *engine }

// pool looks for a pool. Kinds: Invalid, naming those that there are.
func (e *engine) pool(name string) (*pool, error) {
	names := make([]string, len(e.pools))
	for i, p := range e.pools {
		if p.name == name {
			return p, nil
		}
		names[i] = p.name
	}
	return nil, backends.Errorf(backends.Invalid, "there is no pool %q on this node: use %s", name, strings.Join(names, " or "))
}

// Close ends the work in the background and lets another process have the data directory and the pools.
func (e *engine) Close() error {
	errs := []error{e.making.close(), e.closeMeasuring()}
	for _, p := range e.pools {
		errs = append(errs, p.close())
	}
	return errors.Join(append(errs, e.lock.Close())...)
}
