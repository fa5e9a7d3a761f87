package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
)

// suite is the built suite and the cluster that it tests.
type suite struct {
	options
	out          io.Writer
	test, ginkgo string // programs
	cluster      *access.Cluster
}

// prepare builds the suite, brings up the cluster and deploys the driver.
func prepare(ctx context.Context, o options) (*suite, error) {
	s := &suite{options: o, out: os.Stdout}
	if err := os.MkdirAll(o.data, 0o755); err != nil {
		return nil, err
	}
	if err := s.build(ctx); err != nil {
		return nil, err
	}
	var err error
	if o.keep {
		if s.cluster, err = access.Open(s.deployment().Data); !errors.Is(err, access.ErrDown) {
			return s, err
		}
	} else if err := deployed.Down(ctx, s.deployment()); err != nil {
		return nil, err
	}
	if err := s.bringUp(ctx); err != nil {
		return nil, errors.Join(err, s.down(ctx))
	}
	return s, nil
}

// bringUp brings up the cluster, gives it a disk for the pools, and deploys the driver.
func (s *suite) bringUp(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./tests/e2e/cluster", "up", "-data", s.deployment().Data)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.tree, s.out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("bring up the cluster: %w", err)
	}
	c, err := access.Open(s.deployment().Data)
	if err != nil {
		return err
	}
	if err := givePool(ctx, c); err != nil {
		return err
	}
	s.cluster, err = deployed.Up(ctx, s.deployment())
	return err
}

func (s *suite) deployment() deployed.Options {
	return deployed.Options{Tree: s.tree, Data: filepath.Join(s.data, "cluster"), Out: s.out, Directories: true}
}

// down takes the cluster down, even if the run was interrupted.
func (s *suite) down(ctx context.Context) error {
	if s.keep {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	return deployed.Down(ctx, s.deployment())
}

// build builds the suite's programs, or finds them.
func (s *suite) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./tests/e2e/cluster", "build", "-e2e-suite")
	cmd.Dir, cmd.Stderr = s.tree, os.Stderr
	var list strings.Builder
	cmd.Stdout = io.MultiWriter(&list, s.out)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the suite: %w", err)
	}
	programs := map[string]string{}
	for line := range strings.Lines(list.String()) {
		if name, path, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			programs[name] = path
		}
	}
	s.test, s.ginkgo = programs["e2e.test"], programs["ginkgo"]
	if s.test == "" || s.ginkgo == "" {
		return fmt.Errorf("the suite was built, and e2e.test and ginkgo are not among %v", programs)
	}
	return nil
}

// run runs the specs of a definition once, writes all logs to the folder, and returns the outcome of each spec.
func (s *suite) run(ctx context.Context, d definition, into string, excluded []exclusion) (*report, error) {
	driver, err := d.write(filepath.Join(s.tree, folder, "testdata"), into)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(into, "log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := s.command(ctx, into, append(s.chosen(d, excluded), s.test, "--",
		"-kubeconfig", s.cluster.Kubeconfig(), "-provider", "local", "-storage.testdriver", driver))
	cmd.Stdout, cmd.Stderr = log, log
	fmt.Fprintf(s.out, "conformance: %s: %s\n", d.name, log.Name())
	failed := cmd.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r, err := readReport(filepath.Join(into, reportFile))
	if err != nil {
		return nil, errors.Join(err, failed)
	}
	r.failed = failed
	return r, nil
}

// command returns one run of ginkgo. Cancellation first interrupts it, so that the specs clean up.
func (s *suite) command(ctx context.Context, into string, args []string) *exec.Cmd {
	args = append([]string{
		fmt.Sprintf("--procs=%d", s.procs), "--timeout=" + s.timeout.String(), "--no-color",
		"--output-dir=" + into, "--json-report=" + reportFile, "--junit-report=junit.xml",
	}, args...)
	cmd := exec.CommandContext(ctx, s.ginkgo, args...)
	cmd.Dir = into
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 2 * time.Minute
	return cmd
}

// coreSpecs is a regular expression of the most valuable specs for a run of a few minutes.
const coreSpecs = `\] (provisioning|volumes|volumeMode|volume-expand|snapshottable|capacity|topology|read-write-once-pod)`

// chosen returns the flags that select the specs to run.
func (s *suite) chosen(d definition, excluded []exclusion) []string {
	focus := d.only
	if s.suite == "core" {
		focus = coreSpecs
	}
	if s.focus != "" {
		focus = s.focus
	}
	flags := []string{"--focus=External.Storage.*(" + focus + ")"}
	if s.suite != "full" {
		flags = append(flags, `--skip=\[Slow\]|\[Serial\]|\[Disruptive\]`)
	}
	for _, e := range excluded {
		flags = append(flags, "--skip="+e.Spec)
	}
	return flags
}
