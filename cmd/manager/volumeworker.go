package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/volumeworker"
)

// volumeWorkerOptions are the flags of the worker that makes volumes.
type volumeWorkerOptions struct {
	process
	node, csiAddress string
	workers          int
	timeout, period  time.Duration
}

func volumeWorkerCommand() *cobra.Command {
	o := &volumeWorkerOptions{}
	cmd := &cobra.Command{
		Use:   "volume-worker",
		Short: "Have a node's own driver make the local volumes of a cluster",
		Long: `Have 'stowage standalone' on this node make, grow, modify and delete the LocalVolumes of the node, take and
delete its LocalSnapshots and LocalSnapshotGroups, and report its pools in the status of the node's NodeStorage. If the
master asks, it reports whether the node uses a volume. It needs no rights on the node but to its driver's socket.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.node, "node-name", "", "this node's name in Kubernetes, which is its driver's node ID too")
	flags.StringVar(&o.namespace, "namespace", "", "the namespace of the NodeStorages and of what the worker is asked for")
	flags.StringVar(&o.csiAddress, "csi-address", "/csi/csi.sock", "the socket of the node's driver")
	flags.IntVar(&o.workers, "workers", 8,
		"how many volumes, how many snapshots and how many groups of them are looked at at a time")
	flags.DurationVar(&o.timeout, "timeout", time.Minute,
		"how long the driver may take for a request before it is made again")
	flags.DurationVar(&o.period, "report-period", 30*time.Second, "how often the driver is asked for its pools")
	o.bind(cmd, 9817)
	return cmd
}

func (o *volumeWorkerOptions) check() error {
	switch {
	case o.node == "":
		return errors.New("--node-name is missing: give this node's name in Kubernetes")
	case o.namespace == "":
		return errors.New("--namespace is missing: name the namespace of the LocalVolumes")
	case o.workers < 1:
		return fmt.Errorf("--workers is %d: it must be 1 at least", o.workers)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout is %s: it must be longer than nothing", o.timeout)
	case o.period < time.Second:
		return fmt.Errorf("--report-period is %s: it must be 1s at least", o.period)
	}
	return o.process.check()
}

func (o *volumeWorkerOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	log := o.log()
	driver, err := csiclient.Connect(ctx, o.csiAddress)
	if err != nil {
		return err
	}
	defer driver.Close() //nolint:errcheck // The process ends with it.
	// Only this node's objects, so that the API server sends nothing of other nodes.
	own := cache.ByObject{Field: fields.OneTermEqualSelector("spec.node", o.node)}
	settings := ctrl.Options{Cache: cache.Options{
		DefaultNamespaces: map[string]cache.Config{o.namespace: {}},
		ByObject: map[client.Object]cache.ByObject{&v1alpha1.LocalVolume{}: own, &v1alpha1.LocalSnapshot{}: own,
			&v1alpha1.LocalSnapshotGroup{}: own},
	}}
	return o.start(ctx, log, settings, func(manager ctrl.Manager) error {
		log.Info("making the node's volumes", "node", o.node, "driver", driver.Driver(), "version", version)
		return volumeworker.Add(manager, volumeworker.Options{Node: o.node, Namespace: o.namespace, Driver: driver,
			Timeout: o.timeout, Period: o.period, Workers: o.workers, Log: log})
	})
}
