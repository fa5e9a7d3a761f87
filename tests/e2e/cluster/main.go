package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/controlplane"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/node"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/up"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// command is a subcommand with its flags.
type command struct {
	layout   layout.Layout
	nodes    int
	number   int
	tree     string
	suite    bool
	programs bool
	args     []string
}

func run(ctx context.Context, args []string) error {
	actions := map[string]func(context.Context, *command) error{
		"up": bringUp, "down": takeDown, "status": status, "build": build, "load": load, "enter": enter,
		"control-plane": runControlPlane, "node": runNode,
	}
	if len(args) == 0 || actions[args[0]] == nil {
		return fmt.Errorf("usage: cluster up|down|status|build|load|enter")
	}
	var c command
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	data := flags.String("data", layout.DefaultData, "the folder of the cluster's data")
	flags.IntVar(&c.nodes, "nodes", 1, "how many nodes")
	flags.StringVar(&c.tree, "tree", ".", "the root of the source tree")
	flags.BoolVar(&c.suite, "e2e-suite", false, "build what the official tests are run with")
	flags.BoolVar(&c.programs, "programs", false, "build all programs, and no image")
	flags.IntVar(&c.number, "number", 0, "which node this process is")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	c.args = flags.Args()
	var err error
	if c.layout, err = layout.New(*data); err != nil {
		return err
	}
	return actions[args[0]](ctx, &c)
}

func (c *command) options() (up.Options, error) {
	tree, err := filepath.Abs(c.tree)
	return up.Options{Layout: c.layout, Nodes: c.nodes, Tree: tree, Store: store.CacheDir("cluster"), Out: os.Stdout}, err
}

func bringUp(ctx context.Context, c *command) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("a cluster is brought up by root: its namespaces, mounts and control groups are root's")
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	return up.Up(ctx, o)
}

func takeDown(ctx context.Context, c *command) error { return up.Down(ctx, c.layout, os.Stdout) }

// runControlPlane runs the process that holds a cluster.
func runControlPlane(ctx context.Context, c *command) error {
	listener, err := up.Inherited()
	if err != nil {
		return err
	}
	return controlplane.Run(ctx, c.layout, logger(), listener)
}

// runNode runs the process that holds a node.
func runNode(ctx context.Context, c *command) error {
	return node.Run(ctx, c.layout, logger(), c.number)
}

func logger() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }
