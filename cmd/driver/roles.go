package main

import (
	"github.com/spf13/cobra"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// role selects the CSI services that a process serves besides Identity. It is also the name of the command.
type role string

const (
	onlyController role = "controller"
	onlyNode       role = "node"
	both           role = "standalone"
)

// keep removes the side of an instance that the role does not serve.
func (r role) keep(instance *backends.Instance) {
	switch r {
	case onlyController:
		instance.Node = nil
	case onlyNode:
		instance.Controller = nil
	case both:
	}
}

// backend returns the role's default backend; in a cluster no backend is more usual than another.
func (r role) backend() string {
	if r == both {
		return "local"
	}
	return "nfs"
}

func controllerCommand(registry backends.Registry) *cobra.Command {
	o := &options{role: onlyController}
	cmd := &cobra.Command{
		Use:   string(onlyController),
		Short: "Serve the controller of a backend for a cluster",
		Long: `Serve a backend's controller service, beside csi-provisioner and the other sidecars. What it must know again after a
restart is on the storage: the data directory may be empty each time.`,
		Example: `  stowage controller --backend=nfs --endpoint=unix:///csi/csi.sock --data-dir=/data`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), registry) },
	}
	o.bind(cmd, registry)
	o.bindController(cmd)
	return cmd
}

func nodeCommand(registry backends.Registry) *cobra.Command {
	o := &options{role: onlyNode}
	cmd := &cobra.Command{
		Use:   string(onlyNode),
		Short: "Serve a node of a cluster",
		Long: `Serve a backend's node service, beside node-driver-registrar. It needs root, for mounting, and the kubelet's
directories with mount propagation.`,
		Example: `  stowage node --backend=nfs --node-id=worker-1 --endpoint=unix:///csi/csi.sock --data-dir=/csi/state`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), registry) },
	}
	o.bind(cmd, registry)
	o.bindNode(cmd)
	return cmd
}
