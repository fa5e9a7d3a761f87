package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-csi/stowage/pkg/controllers/binder"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/failover"
	"github.com/stowage-csi/stowage/pkg/controllers/orphan"
	"github.com/stowage-csi/stowage/pkg/controllers/startup"
	"github.com/stowage-csi/stowage/pkg/controllers/volumeset"
)

// options are the flags of a driver's manager.
type options struct {
	process
	csiAddress, holds                           string
	slots, workers                              int
	timeout, surplus, orphans, orphanGrace, lag time.Duration
	deleteLeaked                                time.Duration
	bindQPS                                     float32
	detach, failover, startup                   bool
}

func (o *options) check() error {
	for _, check := range []func() error{
		o.process.check, o.checkRate, o.checkDriver, o.checkSets, o.checkOrphans, o.checkFailover,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) checkDriver() error {
	switch {
	case o.namespace == "":
		return errors.New("--namespace is missing: name the namespace that the manager's pod is in")
	case o.timeout <= 0:
		return fmt.Errorf("--timeout is %s: it must be longer than nothing", o.timeout)
	}
	return nil
}

func (o *options) checkSets() error {
	switch {
	case o.slots < 1 || o.slots > 64:
		return fmt.Errorf("--volumes-at-once is %d: it must be from 1 to 64", o.slots)
	case o.workers < 1:
		return fmt.Errorf("--workers is %d: it must be 1 at least", o.workers)
	case !isRate(o.bindQPS):
		return fmt.Errorf("--bind-api-qps is %g: it must be 0, which leaves binding to Kubernetes, or more", o.bindQPS)
	case o.surplus < 0:
		return fmt.Errorf("--surplus-delay is %s: it must not be negative", o.surplus)
	}
	return nil
}

func (o *options) checkOrphans() error {
	switch {
	case o.orphans != 0 && o.orphans < time.Second:
		return fmt.Errorf("--orphan-period is %s: it must be 0, which compares nothing, or 1s at least", o.orphans)
	case o.orphanGrace < 0:
		return fmt.Errorf("--orphan-grace is %s: it must not be negative", o.orphanGrace)
	case o.detach && o.orphans == 0:
		return errors.New("--detach-dangling needs --orphan-period: dangling attachments are found by the comparison")
	case o.deleteLeaked != 0 && o.orphans == 0:
		return errors.New("--delete-leaked-after needs --orphan-period: leaked volumes are found by the comparison")
	case o.deleteLeaked != 0 && o.deleteLeaked < max(time.Hour, o.orphanGrace):
		return fmt.Errorf("--delete-leaked-after is %s: it must be 0, which deletes nothing, or %s at least",
			o.deleteLeaked, max(time.Hour, o.orphanGrace))
	}
	return nil
}

func (o *options) checkFailover() error {
	switch {
	case o.failover && o.lag < time.Second:
		return fmt.Errorf("--failover-lag is %s: it must be 1s at least", o.lag)
	case o.holds != "" && !o.failover:
		return errors.New("--serve-holds needs --failover: without it the volumes of a dead node would stay attached")
	}
	return checkEndpoint("--serve-holds", o.holds)
}

func (o *options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	log := o.log()
	driver, err := csiclient.Connect(ctx, o.csiAddress)
	if err != nil {
		return err
	}
	defer driver.Close() //nolint:errcheck // The process ends with it.
	settings := ctrl.Options{
		LeaderElectionID: "stowage-manager-" + driver.Driver(),
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{ // Only the Leases of nodes.
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{corev1.NamespaceNodeLease: {}}},
		}},
	}
	return o.start(ctx, log, settings, func(manager ctrl.Manager) error {
		log.Info("serving", "driver", driver.Driver(), "version", version)
		return o.add(ctx, manager, driver, log)
	})
}

// add adds the controllers that the flags select.
func (o *options) add(ctx context.Context, manager ctrl.Manager, driver *csiclient.Client, log *slog.Logger) error {
	err := volumeset.Add(manager, volumeset.Options{
		Driver: driver, Log: log, Slots: o.slots, Workers: o.workers, Timeout: o.timeout, Surplus: o.surplus,
		Metrics: registry.Registry,
	})
	if err != nil {
		return err
	}
	if o.bindQPS > 0 {
		if err := binder.Add(manager,
			binder.Options{Driver: driver.Driver(), Log: log, QPS: o.bindQPS, Metrics: registry.Registry}); err != nil {
			return err
		}
	}
	if o.orphans > 0 {
		err := orphan.Add(manager, orphan.Options{Driver: driver, Log: log, Period: o.orphans, Grace: o.orphanGrace,
			Repair: o.detach, DeleteAfter: o.deleteLeaked, Deleter: driver})
		if err != nil {
			return err
		}
	}
	if o.failover {
		if err := o.addFailover(ctx, manager, driver, log); err != nil {
			return err
		}
	}
	if o.startup {
		return startup.Add(manager, startup.Options{Driver: driver.Driver(), Log: log, Metrics: registry.Registry})
	}
	return nil
}

// addFailover adds the failover of nodes, and the server that tells the driver whether a node uses a volume.
func (o *options) addFailover(ctx context.Context, m ctrl.Manager, driver *csiclient.Client, log *slog.Logger) error {
	if err := driver.KnowsMachines(ctx); err != nil {
		return err
	}
	answer, err := failover.Add(m, failover.Options{Driver: driver, Log: log, Lag: o.lag})
	if err != nil || o.holds == "" {
		return err
	}
	return addHolds(ctx, m, o.holds, log, answer)
}
