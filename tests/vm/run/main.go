package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/internal/boot"
)

// options are the command-line options.
type options struct {
	tree    boot.Tree
	match   string
	timeout time.Duration
	memory  int
	seed    string
	suites  []suite
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, parse())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	tree := flag.String("tree", ".", "the root of the source tree")
	flag.StringVar(&o.match, "run", "", "run only the tests that match the regular expression, as go test's -run")
	flag.DurationVar(&o.timeout, "timeout", 15*time.Minute, "how long the tests of one package may take")
	flag.IntVar(&o.memory, "memory", boot.DefaultMemory, "the guest's memory in MiB")
	flag.StringVar(&o.seed, "seed", "", "the seed of the suites that have a flag for one; empty for theirs")
	long := flag.Bool("long", false, "run the suites that take many minutes too: the conformance suite")
	flag.Parse()
	o.tree = boot.Tree(*tree)
	for _, pkg := range flag.Args() {
		o.suites = append(o.suites, named(pkg, o.match)...)
	}
	switch {
	case len(o.suites) > 0:
	case *long:
		o.suites = suites()
	default:
		o.suites = usual()
	}
	return o
}

// say prints a message.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "vm: "+format+"\n", args...) }

// since returns the time since begun.
func since(begun time.Time) time.Duration { return time.Since(begun).Round(100 * time.Millisecond) }
