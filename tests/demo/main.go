package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// prefix is the prefix of the demo's directories: each demo removes the leftovers of a dead one.
const prefix = "stowage-demo"

func main() {
	if len(os.Args) > 1 && os.Args[1] == writeCommand {
		os.Exit(runWrite(os.Args[2:]))
	}
	binary := flag.String("binary", "bin/stowage", "the driver's binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Stdout, *binary)
	stop()
	os.Exit(code)
}

// run returns the exit code.
func run(ctx context.Context, out io.Writer, binary string) int {
	binary, err := filepath.Abs(binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	if missing := missing(binary); len(missing) > 0 {
		fmt.Fprintln(os.Stderr, "demo: this machine lacks what the demo needs:")
		for _, m := range missing {
			fmt.Fprintln(os.Stderr, "  -", m)
		}
		return 2
	}
	workspace, err := orchestrator.NewWorkspace(prefix)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	for _, warning := range workspace.Warnings {
		fmt.Fprintln(os.Stderr, "demo:", warning)
	}
	return show(ctx, out, binary, workspace)
}

func missing(binary string) []string {
	missing := orchestrator.Missing()
	if info, err := os.Stat(binary); err != nil || info.Mode()&0o111 == 0 {
		missing = append(missing, fmt.Sprintf("the driver's binary %s: run make build", binary))
	}
	return missing
}

// show runs all steps, and cleans up in any case.
func show(ctx context.Context, out io.Writer, binary string, workspace *orchestrator.Workspace) int {
	driver := &orchestrator.Driver{
		Binary: binary, Workspace: workspace, Backend: "local", Args: []string{"--delegate-fsgroup", "-v=4"},
	}
	table := newTable(out)
	err := steps(ctx, table, driver)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(out, "\n%s\n", driver.Tail(30))
	}
	if driver.Running() {
		err = errors.Join(err, driver.Kill(true))
	}
	err = errors.Join(err, workspace.Remove())
	table.total(err)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(out, "demo: interrupted, and cleaned up")
		return 130
	case err != nil:
		fmt.Fprintln(out, "demo:", err)
		return 1
	}
	return 0
}

// steps runs the steps until one fails.
func steps(ctx context.Context, table *table, driver *orchestrator.Driver) error {
	client, err := driver.Dial(orchestrator.DefaultPolicy(), nil)
	if err != nil {
		return err
	}
	d := &demo{driver: driver, client: client, workspace: driver.Workspace}
	defer d.client.Close() //nolint:errcheck // nothing hangs on the end of the connection
	for _, s := range d.steps() {
		if err := table.run(ctx, s.title, s.do); err != nil {
			return err
		}
	}
	return nil
}
