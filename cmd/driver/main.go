package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stowage-csi/stowage/pkg/backends/all"
)

// version is set by the linker (-X main.version=…).
var version = "dev"

func main() {
	collectLess(os.Getenv("GOGC"))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stowage:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "stowage",
		Short: "A CSI driver for cloud disks, NFS and local disks",
		Long: `Stowage serves the Container Storage Interface for one kind of storage, its backend.

Each process serves one backend under one driver name, such as local.csi.stowage.dev.`,
		Example: `  stowage standalone --backend=local --endpoint=unix:///run/stowage/csi.sock --data-dir=/var/lib/stowage
  stowage controller --backend=nfs --endpoint=unix:///csi/csi.sock --data-dir=/data
  stowage node --backend=nfs --node-id=worker-1 --endpoint=unix:///csi/csi.sock --data-dir=/csi/state
  stowage version`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	registry := all.Registry()
	root.AddCommand(controllerCommand(registry), nodeCommand(registry), standalone(registry), disksCommand(),
		scrubCommand(), probeCommand(), versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "stowage", version)
			return err
		},
	}
}
