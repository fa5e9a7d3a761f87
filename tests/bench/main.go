package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() {
	os.Exit(start())
}

// start returns the exit code: 0, 1 for a failure, or 2 for wrong flags.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	opts, err := parseOptions(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	case opts.floorServer != "":
		err = serveFloor(ctx, opts.floorServer, os.Stdin)
	default:
		err = run(ctx, opts, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// run measures everything and prints the report to out; progress goes to log.
func run(ctx context.Context, opts options, out, log io.Writer) (err error) {
	if unix.Geteuid() != 0 {
		return errors.New("this needs root: the mounts and loop devices are real")
	}
	space, err := newWorkspace(opts.dir)
	if err != nil {
		return err
	}
	defer func() { err = space.close(err) }()
	phases, again, err := load(ctx, opts, space.dir, log)
	if ctx.Err() != nil {
		return context.Cause(ctx) // Any other error is a consequence.
	}
	if err != nil {
		return err
	}
	if err := report(out, opts, phases); err != nil {
		return err
	}
	again.report(out)
	return nil
}
