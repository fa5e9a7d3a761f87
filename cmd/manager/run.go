package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/binder"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/failover"
	"github.com/stowage-csi/stowage/pkg/controllers/orphan"
	"github.com/stowage-csi/stowage/pkg/controllers/volumeset"
)

// options are the flags.
type options struct {
	csiAddress, namespace, kubeconfig, httpEndpoint, logFormat string
	verbosity, slots, workers, burst                           int
	timeout, surplus, orphans, orphanGrace, lag                time.Duration
	qps, bindQPS                                               float32
	detach, failover                                           bool
}

func (o *options) check() error {
	for _, check := range []func() error{o.checkProcess, o.checkSets, o.checkOrphans, o.checkFailover} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) checkProcess() error {
	switch {
	case o.namespace == "":
		return errors.New("--namespace is missing: name the namespace that the manager's pod is in")
	case o.logFormat != "text" && o.logFormat != "json":
		return fmt.Errorf("--log-format is %q: use text or json", o.logFormat)
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
	case o.bindQPS < 0:
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
	case o.detach && o.orphans == 0:
		return errors.New("--detach-dangling needs --orphan-period: dangling attachments are found by the comparison")
	}
	return nil
}

func (o *options) checkFailover() error {
	if o.failover && o.lag < time.Second {
		return fmt.Errorf("--failover-lag is %s: it must be 1s at least", o.lag)
	}
	return nil
}

func (o *options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	log := o.log()
	config, err := o.config()
	if err != nil {
		return err
	}
	driver, err := csiclient.Connect(ctx, o.csiAddress)
	if err != nil {
		return err
	}
	defer driver.Close() //nolint:errcheck // The process ends with it.
	probes := &health{}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme(), Logger: logr.FromSlogHandler(log.Handler()),
		Metrics: probes.beside(o.httpEndpoint),
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{ // Of all Leases those of nodes.
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{corev1.NamespaceNodeLease: {}}},
		}},
		LeaderElection: true, LeaderElectionID: "stowage-manager-" + driver.Driver(), LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true, // Nothing of it works on when Start has returned: the process ends.
	})
	if err != nil {
		return fmt.Errorf("reach Kubernetes: %w", err)
	}
	probes.cache = manager.GetCache() // Before anything is served.
	if err := o.add(ctx, manager, driver, log); err != nil {
		return err
	}
	log.Info("serving", "driver", driver.Driver(), "version", version)
	return manager.Start(ctx)
}

// add adds the controllers that the flags ask for.
func (o *options) add(ctx context.Context, manager ctrl.Manager, driver *csiclient.Client, log *slog.Logger) error {
	err := volumeset.Add(manager, volumeset.Options{
		Driver: driver, Log: log, Slots: o.slots, Workers: o.workers, Timeout: o.timeout, Surplus: o.surplus,
		Metrics: registry.Registry,
	})
	if err != nil {
		return err
	}
	if o.bindQPS > 0 {
		if err := binder.Add(manager, binder.Options{Driver: driver.Driver(), Log: log, QPS: o.bindQPS, Metrics: registry.Registry}); err != nil {
			return err
		}
	}
	if o.orphans > 0 {
		err := orphan.Add(manager, orphan.Options{Driver: driver, Log: log, Period: o.orphans, Grace: o.orphanGrace, Repair: o.detach})
		if err != nil {
			return err
		}
	}
	if o.failover {
		if err := driver.KnowsMachines(ctx); err != nil {
			return err
		}
		if err := failover.Add(manager, failover.Options{Driver: driver, Log: log, Lag: o.lag}); err != nil {
			return err
		}
	}
	return nil
}

// scheme knows the types that the controllers read and write.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{coordinationv1.AddToScheme, corev1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // The same types each time.
		}
	}
	return s
}

func (o *options) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig is %q: %w", o.kubeconfig, err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	config.UserAgent = "stowage-manager/" + version
	return config, nil
}

func (o *options) log() *slog.Logger {
	leveled := &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}
	var handler slog.Handler = slog.NewTextHandler(os.Stderr, leveled)
	if o.logFormat == "json" {
		handler = slog.NewJSONHandler(os.Stderr, leveled)
	}
	log := slog.New(handler)
	klog.SetSlogLogger(log)
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	return log
}
