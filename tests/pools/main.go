package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the flags.
type options struct {
	claims, qps, recycle, volumes, nodes, disks int
	keep                                        bool
}

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("pools", flag.ContinueOnError)
	flags.IntVar(&o.claims, "claims", 200, "how many claims are made at once")
	flags.IntVar(&o.qps, "bind-api-qps", 300, "the manager's flag")
	flags.IntVar(&o.recycle, "recycle", 0, "have so many released volumes recycled instead")
	flags.IntVar(&o.volumes, "volumes", 0, "time sets with so many volumes in all instead")
	flags.IntVar(&o.nodes, "nodes", 0, "simulate found disks of so many nodes instead")
	flags.IntVar(&o.disks, "disks", 20, "how many disks each of these nodes has")
	flags.BoolVar(&o.keep, "keep", false, "keep the folder with all logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "pools-")
	if err != nil {
		return err
	}
	p := newPlane(folder)
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		if o.keep {
			fmt.Println("the logs are in", folder)
			return
		}
		p.group.Wait() // All programs are killed.
		_ = os.RemoveAll(folder)
	}()
	if o.nodes > 0 {
		return fleet(ctx, p, o)
	}
	begun := time.Now()
	if err := p.start(ctx); err != nil {
		return err
	}
	fmt.Printf("the control plane is up after %v\n", time.Since(begun).Round(time.Millisecond))
	switch {
	case o.recycle > 0:
		return recycle(ctx, p, o)
	case o.volumes > 0:
		return many(ctx, p, o)
	}
	return bind(ctx, p, o)
}
