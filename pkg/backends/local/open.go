package local

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// open starts the backend. Kinds: Invalid for options or a configuration that are wrong; Busy while another process
// uses the data directory. An unusable pool is no error: the others are served. That includes a pool that another
// process uses, that has another type, or that is in another pool through a link.
func open(ctx context.Context, options backends.Options) (instance *backends.Instance, err error) {
	defer annotate(&err, "open the local backend", "")
	e, err := newEngine(options)
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx, options.Config); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.waiting.limits.Open)
		defer cancel()
		return nil, errors.Join(err, e.Close(ctx))
	}
	if e.hasInstants() {
		g := &grouping{e}
		return &backends.Instance{Controller: g, Node: g, Close: e.Close}, nil
	}
	return &backends.Instance{Controller: e, Node: e, Close: e.Close}, nil
}

// hasInstants reports whether any pool, served or not, can copy its volumes at one instant.
func (e *engine) hasInstants() bool {
	return slices.ContainsFunc(e.pools, func(p *pool) bool { return p.storage.instant }) ||
		slices.ContainsFunc(e.leftPools(), func(k *knownPool) bool { return k.poolType.storage().instant })
}

// newEngine checks the options and locks the data directory.
func newEngine(options backends.Options) (*engine, error) {
	if options.Driver == "" || options.NodeID == "" {
		return nil, backends.Errorf(backends.Invalid,
			"driver is %q and node ID %q: the local backend needs both, because it serves volumes where it runs",
			options.Driver, options.NodeID)
	}
	if err := checkPath(options.DataDir); err != nil {
		return nil, backends.Errorf(backends.Invalid, "the data directory is wrong: %w", err)
	}
	if err := durable.MakeAll(filepath.Join(options.DataDir, knownFolder), 0o700); err != nil {
		return nil, err
	}
	dataDir, err := filepath.EvalSymlinks(options.DataDir)
	if err != nil {
		return nil, err
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	// If the kubelet created the data directory, other users can read it, and so lock it. They cannot lock this folder in
	// it.
	lock, err := dirlock.Lock(filepath.Join(dataDir, knownFolder))
	if err != nil {
		return nil, err
	}
	log := options.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	life, stop := context.WithCancel(context.Background())
	e := &engine{
		life: life, stop: stop, paths: map[string]string{}, left: map[string]*knownPool{},
		node: options.NodeID, place: backends.Topology{topologyKey(options.Driver): options.NodeID}, boot: boot,
		dataDir: dataDir, lock: lock, log: log, now: time.Now,
		stock: newStock(), waiting: &waiting{limits: Limits{}.orDefault()},
		making: newWorks(),
	}
	e.disks = newDisks(e.stock, e.waiting, log)
	e.makeUsedNotes()
	e.dropReleased()
	return e, nil
}

// start opens the pools and repairs what a crash left in them.
func (e *engine) start(ctx context.Context, configuration any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	config, err := backends.Given[Config](configuration)
	if err != nil {
		return err
	}
	s, err := config.resolve(e.dataDir)
	if err != nil {
		return err
	}
	e.freezeLimit, e.waiting.limits = s.freezeLimit, s.limits
	for i := range s.pools {
		e.pools = append(e.pools, newPool(s.pools[i], e.log))
	}
	if err := e.noteKnown(s); err != nil {
		return err
	}
	if err := e.openPools(ctx); err != nil {
		return err
	}
	for _, k := range e.leftPools() {
		if k.isEmpty() {
			e.log.Info("an empty pool is not in the configuration any more", "pool", k.name, "path", k.path)
			continue
		}
		e.log.Error("a pool is not in the configuration any more: what is in it cannot be used, and is not forgotten",
			"pool", k.name, "path", k.path, "handles", len(k.handles), "why", k.why())
	}
	e.work.Go("the look at what does not work", e.watch)
	return nil
}

// openPools opens all pools at once. A pool that fails to open affects no other: refuse has noted why, and watch opens
// it again. It fails if the context ends.
func (e *engine) openPools(ctx context.Context) error {
	e.disks.foresee(ctx, e.pools)
	e.claimPaths(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, e.waiting.limits.Open, errSlow)
	defer cancel()
	opened := make([]<-chan struct{}, len(e.pools))
	for i, p := range e.pools {
		opened[i] = e.tend(p)
	}
	for i, p := range e.pools {
		select {
		case <-opened[i]:
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errSlow) {
				return ctx.Err()
			}
			p.log.Error("a pool has not answered yet: all others are served", "path", p.settings.path)
		}
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow) {
		return ctx.Err() // The last answers came with it.
	}
	return nil
}

// errSlow is the cause when the pools were not opened in time.
var errSlow = errors.New("opening the pools takes long")
