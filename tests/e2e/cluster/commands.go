package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/up"
)

func build(ctx context.Context, c *command) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	switch {
	case c.programs:
		return up.BuildPrograms(ctx, o)
	case !c.suite:
		return up.Build(ctx, o)
	}
	paths, err := up.BuildSuite(ctx, o)
	for name, path := range paths {
		fmt.Printf("%s\t%s\n", name, path)
	}
	return err
}

func status(_ context.Context, c *command) error {
	cluster, err := access.Open(c.layout.Data())
	if err != nil {
		return err
	}
	fmt.Printf("up with %v\nkubeconfig %s\nkubectl    %s\nlogs       %s\n",
		cluster.Nodes(), cluster.Kubeconfig(), cluster.Kubectl(), cluster.Logs())
	return nil
}

func load(ctx context.Context, c *command) error {
	if len(c.args) == 0 {
		return errors.New("usage: cluster load [-data FOLDER] ARCHIVE, or several")
	}
	cluster, err := access.Open(c.layout.Data())
	if err != nil {
		return err
	}
	for _, archive := range c.args {
		if err := cluster.LoadImage(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

// enter ends with the exit code of the command.
func enter(ctx context.Context, c *command) error {
	if len(c.args) < 2 {
		return errors.New("usage: cluster enter [-data FOLDER] NODE COMMAND, with its arguments")
	}
	cluster, err := access.Open(c.layout.Data())
	if err != nil {
		return err
	}
	cmd, err := cluster.NodeCommand(ctx, c.args[0], c.args[1:]...)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	return err
}
