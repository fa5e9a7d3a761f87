package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	since := flag.String("since", "HEAD~1", "the commit since which tests were changed")
	pkg := flag.String("pkg", "", "the one package, instead of the changed tests")
	run := flag.String("run", ".", "the tests of that package, as go test takes them")
	times := flag.Int("n", 30, "how many times each test runs")
	idle := flag.Bool("idle", false, "run without a load beside the tests")
	flag.Parse()
	if err := flaky(ctx, *since, *pkg, *run, *times, *idle); err != nil {
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
	batches := []batch{{pkg, pattern}}
	if pkg == "" {
		var err error
		if batches, err = changed(ctx, since); err != nil {
			return err
		}
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
	var failed []string
	for _, b := range batches {
		fmt.Printf("== %s %s, %d times\n", b.pkg, b.pattern, times)
		if err := repeat(ctx, b, times); err != nil {
			failed = append(failed, fmt.Sprintf("%s %s: %v", b.pkg, b.pattern, err))
		}
	}
	for _, line := range failed {
		fmt.Println("FAILED", line)
	}
	fmt.Printf("%d passed, %d failed\n", len(batches)-len(failed), len(failed))
	if len(failed) > 0 {
		return errors.New("tests failed by chance, or always")
	}
	return nil
}

// repeat runs a batch, each time as a new process and in another order. It continues after a failure, to count them.
func repeat(ctx context.Context, b batch, times int) error {
	program, remove, err := compile(ctx, b.pkg)
	if err != nil {
		return err
	}
	defer remove()
	var seeds []string
	for n := range times {
		seed := fmt.Sprint(n + 1)
		cmd := exec.CommandContext(ctx, program, "-test.run", b.pattern, "-test.timeout=20m", "-test.shuffle="+seed)
		cmd.Dir = strings.TrimPrefix(b.pkg, "./")
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if strings.Contains(string(out), "testing: warning: no tests to run") {
			return errors.New("there are no tests of that name")
		}
		if err != nil {
			seeds = append(seeds, seed)
			fmt.Printf("-- run %d failed, -shuffle=%s: %v\n%s\n", n+1, seed, err, out)
		}
	}
	if len(seeds) > 0 {
		return fmt.Errorf("%d of %d runs failed, with -shuffle=%s", len(seeds), times, strings.Join(seeds, ", "))
	}
	return nil
}

func compile(ctx context.Context, pkg string) (program string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "flaky")
	if err != nil {
		return "", nil, fmt.Errorf("cannot make a directory for the tests' binary: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	program = dir + "/tests"
	// In the package's folder, go finds its module.
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-race", "-o", program, ".")
	cmd.Dir = strings.TrimPrefix(pkg, "./")
	cmd.Env = slices.Concat(os.Environ(), []string{"CGO_ENABLED=1"})
	if out, err := cmd.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("cannot build the tests of %s: %w\n%s", pkg, err, out)
	}
	return program, remove, nil
}
