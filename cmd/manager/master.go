package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

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
	process
	workers           int
	devices, selector string
	csiEndpoint       string
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
	flags.StringVar(&o.namespace, "namespace", "",
		"the namespace of the NodeStorages, and of the lease by which one master leads")
	o.bind(cmd, 9815)
	o.bindRate(cmd)
	flags.IntVar(&o.workers, "workers", 16, "how many nodes are looked at at a time")
	flags.StringVar(&o.devices, "device-directory", "/var/lib/stowage/disks/links",
		"the directory of the links to devices on a node; no device is offered elsewhere")
	flags.StringSliceVar(&o.mounts, "mount-directories", []string{"/mnt/disks"},
		"the directories right below which filesystems are offered")
	flags.StringVar(&o.selector, "node-selector", "",
		"a selector of the labels of the nodes that get a NodeStorage (default: all)")
	flags.StringVar(&o.csiEndpoint, "csi-endpoint", "",
		"a socket to serve CSI on, as a URL or a bare path, for dynamic local volumes (default: none)")
	flags.DurationVar(&o.goneAfter, "node-gone-after", time.Hour,
		"how long a Node may be gone before its unbound volumes are removed")
	return cmd
}

func (o *masterOptions) check() error {
	for _, dir := range append([]string{o.devices}, o.mounts...) {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
			return fmt.Errorf("the directory %q is not usable: give an absolute path below /, without \"..\", \"//\" or a "+
				"\"/\" at its end", dir)
		}
	}
	switch {
	case o.namespace == "":
		return errors.New("--namespace is missing: name the namespace that the master's pod is in")
	case o.workers < 1:
		return fmt.Errorf("--workers is %d: it must be 1 at least", o.workers)
	case o.goneAfter <= 0:
		return fmt.Errorf("--node-gone-after is %s: it must be longer than nothing", o.goneAfter)
	}
	return cmp.Or(checkEndpoint("--csi-endpoint", o.csiEndpoint), o.process.check(), o.checkRate())
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
	cached := map[client.Object]cache.ByObject{
		&v1alpha1.NodeStorage{}: {Namespaces: map[string]cache.Config{o.namespace: {}}},
	}
	if o.csiEndpoint != "" { // Without CSI, the cluster need not have these resources.
		for _, one := range []client.Object{&v1alpha1.LocalVolume{}, &v1alpha1.LocalSnapshot{},
			&v1alpha1.LocalSnapshotGroup{}} {
			cached[one] = cache.ByObject{Namespaces: map[string]cache.Config{o.namespace: {}}}
		}
	}
	settings := ctrl.Options{
		LeaderElectionID: "stowage-disks-master",
		Cache:            cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: cached},
	}
	return o.start(ctx, log, settings, func(manager ctrl.Manager) error {
		log.Info("serving found disks", "version", version)
		if o.csiEndpoint != "" {
			if err := o.addCSI(ctx, manager, log); err != nil {
				return err
			}
		}
		return nodestorage.Add(manager, nodestorage.Options{
			Namespace: o.namespace, Rules: nodestorage.Rules{Devices: o.devices, Mounts: o.mounts}, Nodes: nodes,
			NodeGoneAfter: o.goneAfter, Workers: o.workers,
		})
	})
}
