package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	tree    string
	match   string
	timeout time.Duration
	memory  int
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
	flag.StringVar(&o.tree, "tree", ".", "the root of the source tree")
	flag.StringVar(&o.match, "run", "", "run only the tests that match the regular expression, as go test's -run")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long the tests of one package may take")
	flag.IntVar(&o.memory, "memory", 2048, "the guest's memory in MiB")
	flag.Parse()
	for _, pkg := range flag.Args() {
		o.suites = append(o.suites, suite{pkg: pkg})
	}
	if len(o.suites) == 0 {
		o.suites = suites()
	}
	return o
}

func (o options) check() error {
	switch {
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64":
		return fmt.Errorf("the guest is an amd64 Linux, and so must this machine be: it is %s/%s", runtime.GOOS, runtime.GOARCH)
	case os.Geteuid() != 0:
		return errors.New("the guest's disk is made by root: its files are root's")
	}
	return nil
}

// cacheDir is beside the other caches: those of the Makefile's tools and of hack/image.
func cacheDir() string {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	if !filepath.IsAbs(cache) {
		cache = "/tmp/.cache"
	}
	return filepath.Join(cache, "stowage", "vm")
}

// say prints a remark.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "vm: "+format+"\n", args...) }

// since says how long ago something began.
func since(begun time.Time) time.Duration { return time.Since(begun).Round(100 * time.Millisecond) }
