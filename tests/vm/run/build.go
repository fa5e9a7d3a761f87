package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// build builds the tests of the suites in the shared folder, each in its own folder.
func (o options) build(ctx context.Context, share string) (wire.Job, error) {
	var job wire.Job
	for _, s := range o.suites {
		// One suite may contain several packages: ./pkg/node/...
		listed, err := o.tree.Go(ctx, "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}",
			s.pkg)
		if err != nil {
			return job, err
		}
		if strings.TrimSpace(listed) == "" {
			return job, fmt.Errorf("%s has no tests", s.pkg)
		}
		for _, line := range strings.Split(strings.TrimSpace(listed), "\n") {
			path, dir, _ := strings.Cut(line, "\t")
			p := wire.Program{Name: path, Dir: fmt.Sprintf("%02d-%s", len(job.Programs), filepath.Base(path)),
				Limit: o.limit(s) + wire.Grace, Temp: s.temp()}
			p.Path, p.Args = filepath.Join(p.Dir, filepath.Base(path)+".test"), o.arguments(s, dir)
			if err := o.buildOne(ctx, p, share, dir); err != nil {
				return job, err
			}
			job.Programs = append(job.Programs, p)
		}
	}
	return job, nil
}

func (o options) buildOne(ctx context.Context, p wire.Program, share, dir string) error {
	if _, err := o.tree.Go(ctx, "test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o",
		filepath.Join(share, p.Path), p.Name); err != nil {
		return err
	}
	return copyTestdata(dir, filepath.Join(share, p.Dir))
}

// limit is the time limit of a suite.
func (o options) limit(s suite) time.Duration { return max(o.timeout, s.timeout) }

// arguments returns the arguments that go test passes to a test binary. dir is the folder of its source.
func (o options) arguments(s suite, dir string) []string {
	args := []string{"-test.paniconexit0", "-test.v=test2json", "-test.timeout=" + o.limit(s).String()}
	if match := cmp.Or(o.match, s.match); match != "" {
		args = append(args, "-test.run="+match)
	}
	if o.seed != "" && takesSeed(dir) {
		args = append(args, "-seed="+o.seed)
	}
	return append(args, s.args...)
}

// takesSeed reports whether the tests define a flag for a seed, as hack/seeded does.
func takesSeed(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // The pattern is well formed.
	return slices.ContainsFunc(files, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(text), `"seed"`)
	})
}

// copyTestdata copies the files that the tests expect in their working directory.
func copyTestdata(from, to string) error {
	from = filepath.Join(from, "testdata")
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.CopyFS(filepath.Join(to, "testdata"), os.DirFS(from))
}
