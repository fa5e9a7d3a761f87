package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the command-line options.
type options struct {
	tree, data  string
	definitions string
	suite       string
	focus       string
	runs, procs int
	timeout     time.Duration
	keep        bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, parse())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.StringVar(&o.tree, "tree", ".", "the root of the source tree")
	flag.StringVar(&o.data, "data", "/var/tmp/stowage-conformance", "the folder of the cluster, the logs and the reports")
	flag.StringVar(&o.definitions, "definitions", "",
		"names of the driver definitions to run, with commas between; all without it")
	flag.StringVar(&o.suite, "suite", "quick",
		"which specs: core (what provisions, mounts, grows and copies), quick (all but those that the suite calls slow, "+
			"serial or disruptive) or full")
	flag.StringVar(&o.focus, "focus", "", "run only the specs whose text matches the regular expression")
	flag.IntVar(&o.runs, "runs", 1, "how often to run each definition")
	flag.IntVar(&o.procs, "procs", 4, "how many specs run at a time")
	flag.DurationVar(&o.timeout, "timeout", 3*time.Hour, "how long one run may take")
	flag.BoolVar(&o.keep, "keep", false, "take the cluster that is up, with the driver as it is in it, and leave it up")
	flag.Parse()
	return o
}

func run(ctx context.Context, o options) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	chosen, err := choose(definitions(), o.definitions)
	if err != nil {
		return err
	}
	list, err := readExceptions(filepath.Join(o.tree, folder, "skips.yaml"), definitions())
	if err != nil {
		return err
	}
	s, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.down(ctx)) }()
	return s.runAll(ctx, chosen, list)
}

func (o *options) check() error {
	switch {
	case os.Geteuid() != 0:
		return errors.New("a cluster is brought up by root: its namespaces, mounts and control groups are root's")
	case flag.NArg() != 0:
		return fmt.Errorf("unknown arguments: %s", strings.Join(flag.Args(), " "))
	case o.suite != "core" && o.suite != "quick" && o.suite != "full":
		return fmt.Errorf("-suite is core, quick or full, not %q", o.suite)
	case o.runs < 1 || o.procs < 1:
		return errors.New("-runs and -procs are at least 1")
	}
	var err error
	if o.data, err = filepath.Abs(o.data); err != nil {
		return err
	}
	o.tree, err = filepath.Abs(o.tree)
	return err
}
