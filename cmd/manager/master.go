package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/nodestorage"
)

// masterOptions are the flags of the master.
type masterOptions struct {
	options
	devices, selector string
	mounts            []string
	goneAfter         time.Duration
}

func masterCommand() *cobra.Command {
	o := &masterOptions{}
	cmd := &cobra.Command{
		Use:   "master",
		Short: "Offer the disks that workers find as PersistentVolumes",
		Long: `Offer the disks, partitions and mount points that workers find on their nodes as PersistentVolumes, and have them wiped
once they are released. Of several masters one works at a time.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "namespace", "", "the namespace of the NodeStorages, and of the lease by which one master leads")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "a kubeconfig file (default: the pod's service account)")
	flags.StringVar(&o.httpEndpoint, "http-endpoint", "0", "an address such as :9815 for /metrics, /healthz and /readyz; 0 serves none")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json")
	flags.IntVarP(&o.verbosity, "v", "v", 0, "how much to log")
	flags.IntVar(&o.workers, "workers", 16, "how many nodes are looked at at a time")
	flags.Float32Var(&o.qps, "kube-api-qps", 100, "how many requests a second the API server gets, on the average")
	flags.IntVar(&o.burst, "kube-api-burst", 200, "how many requests the API server gets at once")
	flags.StringVar(&o.devices, "device-directory", "/var/lib/stowage/disks/links", "the directory of the links to devices on a node; no device is offered elsewhere")
	flags.StringSliceVar(&o.mounts, "mount-directories", []string{"/mnt/disks"}, "the directories right below which filesystems are offered")
	flags.StringVar(&o.selector, "node-selector", "", "a selector of the labels of the nodes that get a NodeStorage (default: all)")
	flags.DurationVar(&o.goneAfter, "node-gone-after", time.Hour, "how long a Node may be gone before its unbound volumes are removed")
	return cmd
}

func (o *masterOptions) check() error {
	for _, dir := range append([]string{o.devices}, o.mounts...) {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
			return fmt.Errorf("the directory %q is not usable: give an absolute path below /, without \"..\", \"//\" or a \"/\" at its end", dir)
		}
	}
	switch {
	case o.namespace == "":
		return errors.New("--namespace is missing: name the namespace that the master's pod is in")
	case o.logFormat != "text" && o.logFormat != "json":
		return fmt.Errorf("--log-format is %q: use text or json", o.logFormat)
	case o.workers < 1:
		return fmt.Errorf("--workers is %d: it must be 1 at least", o.workers)
	case o.goneAfter <= 0:
		return fmt.Errorf("--node-gone-after is %s: it must be longer than nothing", o.goneAfter)
	}
	return nil
}

func (o *masterOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	nodes, err := labels.Parse(o.selector)
	if err != nil {
		return fmt.Errorf("--node-selector is %q: %w", o.selector, err)
	}
	log := o.log()
	config, err := o.config()
	if err != nil {
		return err
	}
	probes := &health{}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme(), Logger: logr.FromSlogHandler(log.Handler()),
		Metrics: probes.beside(o.httpEndpoint),
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         map[client.Object]cache.ByObject{&v1alpha1.NodeStorage{}: {Namespaces: map[string]cache.Config{o.namespace: {}}}},
		},
		LeaderElection: true, LeaderElectionID: "stowage-disks-master", LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true, // Nothing of it works on when Start has returned: the process ends.
	})
	if err != nil {
		return fmt.Errorf("reach Kubernetes: %w", err)
	}
	probes.cache = manager.GetCache() // Before anything is served.
	err = nodestorage.Add(manager, nodestorage.Options{
		Namespace: o.namespace, Rules: nodestorage.Rules{Devices: o.devices, Mounts: o.mounts}, Nodes: nodes,
		NodeGoneAfter: o.goneAfter, Workers: o.workers,
	})
	if err != nil {
		return err
	}
	log.Info("serving found disks", "version", version)
	return manager.Start(ctx)
}
