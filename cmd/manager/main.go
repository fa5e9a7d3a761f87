package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=…).
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	err := command().ExecuteContext(ctx)
	wasStopped := ctx.Err() != nil // Each command serves until it is stopped.
	stop()
	if err != nil && (!wasStopped || !errors.Is(err, context.Canceled)) {
		fmt.Fprintln(os.Stderr, "stowage-manager:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "stowage-manager",
		Short: "Keep volumes ready for claims",
		Long: `Run the Kubernetes controllers of one CSI driver beside it. They ask for volumes through the driver's socket, as
csi-provisioner does. Of several managers of a driver one works at a time.`,
		Example:       `  stowage-manager --csi-address=/csi/csi.sock --namespace=stowage-system --http-endpoint=:9815`,
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.bindAll(cmd)
	cmd.AddCommand(masterCommand(), workerCommand(), volumeWorkerCommand(), recyclerCommand())
	return cmd
}

func (o *options) bindAll(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.bind(cmd, 9815)
	o.bindRate(cmd)
	flags.StringVar(&o.csiAddress, "csi-address", "/csi/csi.sock", "the driver's socket")
	flags.StringVar(&o.namespace, "namespace", "", "the namespace of the lease by which one manager of a driver leads")
	flags.IntVar(&o.slots, "volumes-at-once", 16, "how many volumes of a set are created at a time, 64 at most")
	flags.IntVar(&o.workers, "workers", 32,
		"how many volumes are created at a time in all; a set has at most half of what the other sets leave")
	flags.DurationVar(&o.timeout, "timeout", time.Minute,
		"how long the driver may take for a request before it is made again")
	flags.DurationVar(&o.surplus, "surplus-delay", 5*time.Minute,
		"how long more unbound volumes than a set's minimum are kept")
	flags.Float32Var(&o.bindQPS, "bind-api-qps", 0,
		"how many requests a second the binding of claims to volumes of sets may make; 0 leaves binding to Kubernetes")
	flags.DurationVar(&o.orphans, "orphan-period", 0,
		"how often the driver's volumes and attachments are compared with those that Kubernetes knows; 0 never compares them")
	flags.DurationVar(&o.orphanGrace, "orphan-grace", 10*time.Minute,
		"how long a volume may have no PersistentVolume before it is reported")
	flags.BoolVar(&o.detach, "detach-dangling", false,
		"detach volumes that are attached to a node without a VolumeAttachment and that its kubelet does not report in use")
	flags.DurationVar(&o.deleteLeaked, "delete-leaked-after", 0,
		"delete volumes that no PersistentVolume has named for so long, an hour at least; 0 deletes none. Leave it out "+
			"where PersistentVolumes of policy Retain are deleted to keep their volumes")
	flags.BoolVar(&o.failover, "failover", false,
		"put nodes out of service whose machine the provider says is stopped or terminated, so that their pods and volumes "+
			"move")
	flags.DurationVar(&o.lag, "failover-lag", 2*time.Minute,
		"how old what the provider says of a machine may be, at most")
	flags.StringVar(&o.holds, "serve-holds", "",
		"a socket such as unix:///csi/holds.sock at which the driver asks whether a node uses a volume that is to be "+
			"detached; it needs --failover (default: none)")
	flags.BoolVar(&o.startup, "startup-taint", false,
		"remove the taint DRIVER/agent-not-ready of a node once the driver is registered there")
}
