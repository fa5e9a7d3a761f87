package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/klog/v2"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/driver"
)

func (o *options) run(ctx context.Context, registry backends.Registry) (err error) {
	defer func() { err = untilStopped(ctx, err) }()
	definition, err := registry.Lookup(o.backend)
	if err != nil {
		return fmt.Errorf("--backend: %w", err)
	}
	if err := o.complete(definition); err != nil {
		return err
	}
	if err := o.files.Apply(); err != nil {
		return err
	}
	log := newLog(os.Stderr, o.logFormat, o.verbosity)
	defer klog.Flush()
	if o.role != both && definition.Inseparable {
		return fmt.Errorf("the backend %s keeps volumes where it runs: use stowage %s", definition.Name, both)
	}
	// A second process must be refused before it opens what the first one serves.
	at, err := o.listen(ctx)
	if err != nil {
		return err
	}
	defer at.close()
	release, err := o.lock()
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	defer release()
	instance, err := o.open(ctx, definition, log)
	if err != nil {
		return err
	}
	plugin := driver.NewPlugin(instance)
	o.role.keep(instance)
	end := newEnding(o.grace + restOfEnd)
	if instance.Close != nil {
		defer func() { err = errors.Join(err, end.close(ctx, instance.Close, log)) }()
	}
	if err := o.checkTopology(ctx, instance); err != nil {
		return err
	}
	return o.serve(ctx, definition, instance, plugin, at, end, log)
}

// lock creates the data directory, and locks the node's state in it against other processes. A backend locks its
// controller's state in it.
func (o *options) lock() (release func(), err error) {
	// Volumes belong to root until they are mounted: no other user may read the directory.
	if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
		return nil, err
	}
	if o.role == onlyController {
		return func() {}, nil
	}
	if err := os.MkdirAll(o.stateDir(), 0o700); err != nil {
		return nil, err
	}
	locked, err := dirlock.Lock(o.stateDir())
	if err != nil {
		return nil, err
	}
	return func() { _ = locked.Close() }, nil // It was only locked.
}

// stateDir returns the directory of the node's state.
func (o *options) stateDir() string { return filepath.Join(o.dataDir, "node") }

// open starts the backend.
func (o *options) open(ctx context.Context, definition backends.Definition,
	log *slog.Logger) (*backends.Instance, error) {
	config, err := o.load(definition)
	if err != nil {
		return nil, err
	}
	instance, err := definition.Open(ctx, backends.Options{
		Driver: definition.DriverName(), DataDir: o.dataDir, NodeID: o.nodeID, NodeOnly: o.role == onlyNode, Node: o.node(),
		Cluster:  o.cluster(),
		Topology: o.topology, Config: config, Log: log,
	})
	if err == nil {
		o.nodeID = cmp.Or(instance.NodeID, o.nodeID)
	}
	return instance, err
}

// checkTopology refuses a topology that the backend does not understand.
func (o *options) checkTopology(ctx context.Context, instance *backends.Instance) error {
	var place backends.Topology
	if locator, ok := instance.Node.(backends.Locator); ok {
		var err error
		if place, err = locator.Topology(ctx); err != nil {
			return err
		}
		if err := place.Check(); err != nil {
			return fmt.Errorf("where --node-id=%.64q is: %w", o.nodeID, err)
		}
	}
	for key, value := range o.topology {
		if place[key] != value {
			return fmt.Errorf("--topology has %s=%s: the backend %s, as it is configured, puts this node at %v", key, value,
				o.backend, place)
		}
	}
	return nil
}

// serve answers calls until the context ends, and longer on a node that is being drained.
func (o *options) serve(
	ctx context.Context, definition backends.Definition, instance *backends.Instance, plugin *driver.Plugin,
	at *listeners, end *ending, log *slog.Logger,
) error {
	metrics := driver.NewMetrics(definition.DriverName(), version)
	traces, stopTraces, err := o.traces(ctx, definition.DriverName(), log)
	if err != nil {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	defer stopTraces()
	ctx, served := drain{definition.DriverName(), o.drainGrace, o.readNode, log}.outlast(ctx)
	defer served()
	defer context.AfterFunc(ctx, end.begin)()
	server, err := driver.NewServer(ctx, driver.Config{
		Name: definition.DriverName(), Version: version, Definition: definition, Instance: instance, Plugin: plugin,
		NodeID: o.nodeID, StateDir: o.stateDir(), DelegateFSGroup: o.delegateFSGroup,
		MaxFormats: o.maxFormats, Contained: contained(), Holds: o.holds,
		Metrics: metrics, Traces: traces, Log: log,
	})
	if err != nil {
		return err
	}
	defer at.serveHTTP(ctx, metrics, log)()
	log.Info("serving", "driver", definition.DriverName(), "version", version, "endpoint", o.endpoint,
		"dataDir", o.dataDir, "node", o.nodeID, "features", server.Features().Names())
	return server.Serve(ctx, at.csi, o.grace)
}
