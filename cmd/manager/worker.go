package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/worker"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// workerOptions are the flags of the worker.
type workerOptions struct {
	process
	node, socket string
}

func workerCommand() *cobra.Command {
	o := &workerOptions{}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Report the disks of a node, and have them wiped",
		Long: `Report what 'stowage disks' finds on this node in the status of the node's NodeStorage, and have it wipe what the master
wants wiped. It needs no rights on the node, and in Kubernetes only those of one node's status.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.node, "node-name", "", "this node's name in Kubernetes")
	flags.StringVar(&o.namespace, "namespace", "", "the namespace of the NodeStorages")
	flags.StringVar(&o.socket, "disks-socket", "/run/stowage/disks/disks.sock", "the socket of 'stowage disks'")
	o.bind(cmd, 9816)
	return cmd
}

func (o *workerOptions) check() error {
	switch {
	case o.node == "":
		return errors.New("--node-name is missing: give this node's name in Kubernetes")
	case o.namespace == "":
		return errors.New("--namespace is missing: name the namespace of the NodeStorages")
	}
	return o.process.check()
}

func (o *workerOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	log := o.log()
	// One object by its name, so that the API server sends nothing of other nodes.
	settings := ctrl.Options{Cache: cache.Options{
		DefaultNamespaces: map[string]cache.Config{o.namespace: {}},
		ByObject: map[client.Object]cache.ByObject{&v1alpha1.NodeStorage{}: {Field: fields.OneTermEqualSelector(
			"metadata.name", o.node)}},
	}}
	return o.start(ctx, log, settings, func(manager ctrl.Manager) error {
		log.Info("reporting the node's disks", "node", o.node, "version", version)
		return worker.Add(manager, worker.Options{Node: o.node, Namespace: o.namespace, Disks: report.NewClient(o.socket),
			Log: log})
	})
}
