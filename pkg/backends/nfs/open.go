package nfs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/keylock"
)

// engine is the backend. Its methods are in files that are named after their purpose.
type engine struct {
	mounter export.Mounter
	pool    *share.Pool
	named   map[string]export.Address
	// onlyShares says that only the shares in named may be used.
	onlyShares bool
	places     topologies
	known      *known
	seen       *seen
	permits    *permits
	locks      *keylock.Locks // the items that are being created, changed or removed, by share and key
	copies     *copies
	restless   restless
	janitors   *janitors
	laid       laid
	usage      *usages
	budget     int64 // of an enumeration on one share, in bytes
	disposing  disposals
	log        *slog.Logger
	unproven   *unproven
	now        func() time.Time
}

// controllerSide and nodeSide are the engine's views for controller and node: the node's has no Release, and the
// controller's no Inspect.
type (
	controllerSide struct{ *engine }
	nodeSide       struct{ engine *engine }
)

// open starts the backend. It calls no server. Kinds: Invalid for an incorrect configuration.
func open(_ context.Context, options backends.Options, mounter export.Mounter,
	paceOf func(patience time.Duration) pace) (instance *backends.Instance, err error) {
	defer annotate(&err, "open the nfs backend", "")
	config, err := backends.Given[Config](options.Config)
	if err != nil {
		return nil, err
	}
	named, err := config.resolve()
	if err != nil {
		return nil, err
	}
	places := config.topologies()
	here, err := places.here(options)
	if err != nil {
		return nil, err
	}
	e := &engine{
		mounter: mounter, named: named, onlyShares: config.OnlyShares, places: places, locks: keylock.New(), log: options.Log,
		now: time.Now, budget: mostBytes,
		usage: newUsages(), seen: newSeen(), pool: share.NewPool(mounter, share.DefaultIdle, options.Log),
		unproven: &unproven{log: options.Log},
	}
	e.copies, e.janitors = newCopies(paceOf(config.Patience)), newJanitors(e)
	if err := e.recall(options); err != nil {
		return nil, err
	}
	if !options.NodeOnly {
		e.janitors.watch()
	}
	return e.instance(here), nil
}

// recall reads the notes of an earlier run from the data directory. Kinds: Busy where another controller uses it.
func (e *engine) recall(options backends.Options) (err error) {
	if e.permits, err = openPermits(options); err != nil {
		return err
	}
	e.known, err = openKnown(options.DataDir, e.named,
		func(a export.Address) bool { return e.allow(a, export.Address.Same) == nil }, options.Log)
	if err != nil {
		e.permits.close()
	}
	return err
}

// close stops the work in the background, which the next start resumes. Calls that hang in the kernel end with the
// process. Kinds: Busy, naming the work that has not ended by the end of the context.
func (e *engine) close(ctx context.Context) error {
	e.copies.stop()
	e.usage.stop()
	err := errors.Join(e.janitors.close(ctx), e.copies.close(ctx), e.usage.close(ctx))
	e.pool.Close()
	if err == nil { // Otherwise work under the name is still running: the lock ends with the process.
		e.permits.close()
	}
	return err
}
