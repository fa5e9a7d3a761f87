package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/volumeset"
)

// options are the flags.
type options struct {
	csiAddress, namespace, kubeconfig, httpEndpoint, logFormat string
	verbosity, slots, workers, burst                           int
	timeout, surplus                                           time.Duration
	qps                                                        float32
}

func (o *options) check() error {
	switch {
	case o.namespace == "":
		return errors.New("--namespace is missing: name the namespace that the manager's pod is in")
	case o.logFormat != "text" && o.logFormat != "json":
		return fmt.Errorf("--log-format is %q: use text or json", o.logFormat)
	case o.slots < 1 || o.slots > 64:
		return fmt.Errorf("--volumes-at-once is %d: it must be from 1 to 64", o.slots)
	case o.workers < 1:
		return fmt.Errorf("--workers is %d: it must be 1 at least", o.workers)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout is %s: it must be longer than nothing", o.timeout)
	case o.surplus < 0:
		return fmt.Errorf("--surplus-delay is %s: it must not be negative", o.surplus)
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
		Metrics:        metrics.Options{BindAddress: o.httpEndpoint, ExtraHandlers: probes.handlers()},
		LeaderElection: true, LeaderElectionID: "stowage-manager-" + driver.Driver(), LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true, // Nothing of it works on when Start has returned: the process ends.
	})
	if err != nil {
		return fmt.Errorf("reach Kubernetes: %w", err)
	}
	probes.cache = manager.GetCache() // Before anything is served.
	err = volumeset.Add(manager, volumeset.Options{
		Driver: driver, Log: log, Slots: o.slots, Workers: o.workers, Timeout: o.timeout, Surplus: o.surplus,
	})
	if err != nil {
		return err
	}
	log.Info("serving", "driver", driver.Driver(), "version", version)
	return manager.Start(ctx)
}

// scheme knows the types that the controllers read and write.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme} {
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
