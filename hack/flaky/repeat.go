package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// repeat runs a batch, each time as a new process and in another order, and counts the results of its tests. It
// continues after a failure, and keeps the outputs of the runs that failed in a directory. The tally is nil if the
// tests cannot be built.
func repeat(ctx context.Context, b batch, times int, logs string) (t tally, problems []string) {
	program, remove, err := compile(ctx, b.pkg)
	if err != nil {
		return nil, []string{err.Error()}
	}
	defer remove()
	t = tally{}
	var seeds []string
	for n := range times {
		seed := fmt.Sprint(n + 1)
		cmd := exec.CommandContext(ctx, program, "-test.run", b.pattern, "-test.timeout=20m", "-test.shuffle="+seed,
			"-test.v=test2json", "-test.paniconexit0")
		cmd.Dir = strings.TrimPrefix(b.pkg, "./")
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return t, nil
		}
		t.add(string(out))
		if err != nil {
			seeds = append(seeds, seed)
			fmt.Printf("-- run %d failed, -shuffle=%s: %v; %s\n", n+1, seed, err, keep(logs, b, seed, out))
		}
	}
	if len(seeds) > 0 {
		problems = append(problems, fmt.Sprintf("%d of %d runs failed, with -shuffle=%s", len(seeds), times,
			strings.Join(seeds, ", ")))
	}
	return t, problems
}

// keep writes the output of a run that failed to a file, and says where it is or why it is not there.
func keep(logs string, b batch, seed string, out []byte) string {
	name := strings.ReplaceAll(strings.Trim(b.pkg, "./"), "/", "-") + "-" + seed + ".log"
	path := filepath.Join(logs, name)
	if err := os.MkdirAll(logs, 0o750); err != nil {
		return "its output is lost: " + err.Error()
	}
	if err := os.WriteFile(path, out, 0o600); err != nil {
		return "its output is lost: " + err.Error()
	}
	return "output in " + path
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
