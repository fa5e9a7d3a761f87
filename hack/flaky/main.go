package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/stowage-csi/stowage/hack/outcome"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	since := flag.String("since", "HEAD~1", "the commit since which tests were changed")
	pkg := flag.String("pkg", "", "packages, as go list takes them, instead of the changed tests")
	run := flag.String("run", ".", "the tests of these packages, as go test takes them")
	times := flag.Int("n", 30, "how many times each test runs")
	idle := flag.Bool("idle", false, "run without a load beside the tests")
	only := flag.Bool("load-only", false, "run no tests, but the load, until it is interrupted")
	flag.Parse()
	var err error
	if *only {
		err = loadOnly(ctx)
	} else {
		err = flaky(ctx, *since, *pkg, *run, *times, *idle)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "flaky: %v\n", err)
		os.Exit(1)
	}
}

// batch is a set of tests of one package.
type batch struct{ pkg, pattern string }

func flaky(ctx context.Context, since, pkg, pattern string, times int, idle bool) error {
	if times < 1 {
		return fmt.Errorf("-n %d: want how many times each test runs", times)
	}
	allowed, err := outcome.ReadAllowances("hack/skips")
	if err != nil {
		return err
	}
	batches, err := choose(ctx, since, pkg, pattern)
	if err != nil {
		return err
	}
	if len(batches) == 0 {
		fmt.Printf("no test was added or changed since %s\n", since)
		return nil
	}
	if !idle {
		stop, err := load(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	failed := 0
	for _, b := range batches {
		fmt.Printf("== %s %s, %d times\n", b.pkg, b.pattern, times)
		t, problems := repeat(ctx, b, times, "bin/flaky")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if t != nil { // It was built.
			problems = append(problems, t.judge(b.pkg, times, allowed)...)
			t.print(os.Stdout, b.pkg)
		}
		for _, p := range problems {
			fmt.Printf("FAILED %s: %s\n", b.pkg, p)
		}
		if len(problems) > 0 {
			failed++
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(batches)-failed, failed)
	if failed > 0 {
		return errors.New("tests failed by chance, or always, or did not run")
	}
	return nil
}

// choose returns the batches of packages, or those of the changed tests.
func choose(ctx context.Context, since, pkgs, pattern string) ([]batch, error) {
	if pkgs == "" {
		return changed(ctx, since)
	}
	fields := strings.Fields(pkgs)
	if !strings.Contains(pkgs, "...") { // They may belong to other modules.
		var batches []batch
		for _, pkg := range fields {
			batches = append(batches, batch{pkg, pattern})
		}
		return batches, nil
	}
	const tested = `{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", tested}, fields...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the packages %s: %w", pkgs, err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("cannot find the module: %w", err)
	}
	var batches []batch
	for _, dir := range strings.Fields(string(out)) {
		batches = append(batches, batch{"." + strings.TrimPrefix(dir, root), pattern})
	}
	return batches, nil
}
