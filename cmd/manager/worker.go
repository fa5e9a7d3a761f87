package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
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
	options
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
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "a kubeconfig file (default: the pod's service account)")
	flags.StringVar(&o.httpEndpoint, "http-endpoint", "0", "an address such as :9816 for /metrics, /healthz and /readyz; 0 serves none")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json")
	flags.IntVarP(&o.verbosity, "v", "v", 0, "how much to log")
	return cmd
}

func (o *workerOptions) check() error {
	switch {
	case o.node == "":
		return errors.New("--node-name is missing: give this node's name in Kubernetes")
	case o.namespace == "":
		return errors.New("--namespace is missing: name the namespace of the NodeStorages")
	case o.logFormat != "text" && o.logFormat != "json":
		return fmt.Errorf("--log-format is %q: use text or json", o.logFormat)
	}
	return nil
}

func (o *workerOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	log := o.log()
	config, err := o.config()
	if err != nil {
		return err
	}
	probes := &health{}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme(), Logger: logr.FromSlogHandler(log.Handler()), Metrics: probes.beside(o.httpEndpoint),
		Cache: cache.Options{ // One object by its name, so that the API server sends nothing of other nodes.
			DefaultNamespaces: map[string]cache.Config{o.namespace: {}},
			ByObject:          map[client.Object]cache.ByObject{&v1alpha1.NodeStorage{}: {Field: fields.OneTermEqualSelector("metadata.name", o.node)}},
		},
	})
	if err != nil {
		return fmt.Errorf("reach Kubernetes: %w", err)
	}
	probes.cache = manager.GetCache() // Before anything is served.
	err = worker.Add(manager, worker.Options{Node: o.node, Namespace: o.namespace, Disks: report.NewClient(o.socket), Log: log})
	if err != nil {
		return err
	}
	log.Info("reporting the node's disks", "node", o.node, "version", version)
	return manager.Start(ctx)
}
