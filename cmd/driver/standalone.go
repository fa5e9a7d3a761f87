package main

import (
	"github.com/spf13/cobra"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func standalone(registry backends.Registry) *cobra.Command {
	o := &options{role: both}
	cmd := &cobra.Command{
		Use:   string(both),
		Short: "Serve controller and node in one process",
		Long: `Serve a backend's controller and node services in one process on one socket: for a single machine,
for edge clusters, and for trying things out. It needs root, for mounting.`,
		Example: `  # One pool, "image", in the data directory
  stowage standalone --backend=local --endpoint=/run/stowage/csi.sock --data-dir=/var/lib/stowage

  # Pools of one's own, metrics, and a log for machines
  stowage standalone --backend=local --config=/etc/stowage/pools.yaml --http-endpoint=127.0.0.1:9808 --log-format=json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), registry) },
	}
	o.bind(cmd, registry)
	o.bindNode(cmd)
	return cmd
}
