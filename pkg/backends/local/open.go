package local

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// open starts the backend. Kinds: Invalid for options or a configuration that are wrong; Busy while another
// process uses the data directory or a pool; Unavailable when a pool is not what it was.
func open(ctx context.Context, options backends.Options) (instance *backends.Instance, err error) {
	defer annotate(&err, "open the local backend", "")
	e, err := newEngine(options)
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx, options.Config); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for _, p := range e.pools {
		if p.kind == image {
			g := &grouping{e}
			return &backends.Instance{Controller: g, Node: g, Close: e.Close}, nil
		}
	}
	return &backends.Instance{Controller: e, Node: e, Close: e.Close}, nil
}

// newEngine checks the options and takes the data directory.
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
	lock, err := lockDir(dataDir)
	if err != nil {
		return nil, err
	}
	log := options.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &engine{
		node: options.NodeID, place: backends.Topology{topologyKey(options.Driver): options.NodeID}, boot: boot,
		dataDir: dataDir, lock: lock, log: log, now: time.Now,
		volumes: newShelf[*volume]("volume"), snapshots: newShelf[*snapshot]("snapshot"), groups: newShelf[*group]("group"),
		making: newWorks(), measuring: background.New[struct{}](mostMeasurements),
	}
	e.disks = newDisks(e.held, e.measure)
	return e, nil
}

// start takes the pools and repairs what a crash left in them.
func (e *engine) start(ctx context.Context, configuration any) error {
	config, ok := configuration.(*Config)
	if configuration == nil {
		config, ok = &Config{}, true
	}
	if !ok {
		return backends.Errorf(backends.Invalid, "the configuration is a %T: it must be a *local.Config", configuration)
	}
	s, err := config.resolve(e.dataDir)
	if err != nil {
		return err
	}
	e.freezeLimit = s.freezeLimit
	for i := range s.pools {
		p, err := newPool(s.pools[i], e.dataDir, e.log)
		if err != nil {
			return backends.Errorf(classify(err), "pool %q in %s cannot be used: %w", s.pools[i].name, s.pools[i].path, err)
		}
		e.pools = append(e.pools, p)
		if err := e.disks.join(p); err != nil {
			return err
		}
		s.pools[i].path = p.path // Without symbolic links.
	}
	if err := checkTogether(s.pools, e.dataDir); err != nil {
		return err
	}
	for _, p := range e.pools {
		if err := e.load(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
