package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// runner runs steps and remembers their results.
type runner struct {
	out   io.Writer
	logs  string // the directory of the logs and reports
	seed  string // for random numbers; empty for the fixed seeds
	begun time.Time
	fresh bool // every test runs, although go remembers that it passed
	// offline denies modules the network after the first step: a module that it has not fetched is missing on every
	// machine.
	offline bool

	mu      sync.Mutex
	verdict []verdict
}

// verdict is the result of a step.
type verdict struct {
	step     step
	took     time.Duration
	until    time.Duration // from the beginning of the run
	report   outcome.Report
	failures []outcome.Failure // empty for a step that passed; FLAKY tests are only in the report
	left     []string          // the processes that it left running, and that were ended after it
	unasked  []outcome.Failure // the service that it asks did not answer: it proves nothing, and is no failure of the run
}

// all runs a whole form, and ends it at the time limit. The first step has only its own: how long it takes is up to the
// network.
func (r *runner) all(ctx context.Context, most time.Duration, first step, steps []step) error {
	if r.one(ctx, []step{first}); !r.passed() {
		return r.finish()
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var alone, waiting, computing []step
	for _, s := range steps {
		switch {
		case s.alone:
			alone = append(alone, s)
		case s.waits:
			waiting = append(waiting, s)
		default:
			computing = append(computing, s)
		}
	}
	r.one(ctx, alone)
	var group sync.WaitGroup
	group.Go(func() { r.one(ctx, waiting) })
	group.Go(func() { r.one(ctx, computing) })
	group.Wait()
	return r.finish()
}

// one runs steps one after the other.
func (r *runner) one(ctx context.Context, steps []step) {
	for _, s := range steps {
		v := r.run(ctx, s)
		r.mu.Lock()
		r.verdict = append(r.verdict, v)
		fmt.Fprintln(r.out, v.line())
		r.mu.Unlock()
	}
}

// run runs one step, with its output in a log.
func (r *runner) run(ctx context.Context, s step) (v verdict) {
	v.step = s
	if ctx.Err() != nil {
		v.failures = []outcome.Failure{{Class: outcome.Timeout,
			Error: "not run: the time for all steps was up, or the run was ended"}}
		return v
	}
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	report := filepath.Join(r.logs, s.name+".json")
	_ = os.Remove(report) // At most one of a step of the same name exists.
	mark := fmt.Sprintf("%s=%s-%d-%d", markName, s.name, os.Getpid(), begun.UnixNano())
	err := r.start(limited, s, report, mark)
	v.took, v.until = time.Since(begun), time.Since(r.begun)
	v.report, _ = outcome.Read(report) // A step without tests has none.
	if s.says != "" {
		text, _ := os.ReadFile(r.log(s)) // A missing number does not count.
		v.report.Passed += said(string(text), s.says)
	}
	for _, f := range v.report.Failures {
		if f.Class != outcome.Flaky {
			v.failures = append(v.failures, f)
		}
	}
	if s.asks && unavailable(err) {
		text, _ := os.ReadFile(r.log(s)) // Without it there is no tail.
		v.unasked = []outcome.Failure{{Class: outcome.Infra, Error: noAnswer, Again: s.again(),
			Tail: outcome.Tail(string(text), 60)}}
	} else {
		v.judge(limited, err, r.log(s))
	}
	if r.seed != "" {
		for i, f := range v.failures {
			if strings.HasPrefix(f.Again, ".ci/run ") {
				v.failures[i].Again = "CI_SEED=" + r.seed + " " + f.Again
			}
		}
	}
	now := outcome.Machine()
	for i := range v.failures {
		// The report of the tests has the state at the moment of the failure.
		v.failures[i].Machine = cmp.Or(v.failures[i].Machine, now)
	}
	v.left = endLeft(mark)
	return v
}

func (r *runner) log(s step) string { return filepath.Join(r.logs, s.name+".log") }

// start runs the step's command as a separate process group, which it ends when the context does.
func (r *runner) start(ctx context.Context, s step, report, mark string) error {
	log, err := os.Create(r.log(s))
	if err != nil {
		return fmt.Errorf("cannot write the log: %w", err)
	}
	defer func() { _ = log.Close() }() // A line that is missing there fails nothing.
	cmd := exec.CommandContext(ctx, "bash", "-c", s.command)
	cmd.Stdout, cmd.Stderr = log, log
	path, err := filepath.Abs(report)
	if err != nil {
		return fmt.Errorf("cannot find the directory of the logs: %w", err)
	}
	own, _ := unsteered(os.Environ())
	cmd.Env = append(own, "CI=true", "REPORT="+path, "SEED="+r.seed, "TIMEOUT="+s.patience().String(), mark)
	if r.fresh {
		cmd.Env = append(cmd.Env, "TESTFLAGS=-count=1")
	}
	left := "QUARANTINE=hack/quarantine"
	if s.long {
		left = "QUARANTINE=" // It runs the tests on the list.
	}
	cmd.Env = append(cmd.Env, left)
	if r.offline && s.name != "fetch" {
		cmd.Env = append(cmd.Env, "GOPROXY=off", "GONOPROXY=none")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot run the step: %w", err)
	}
	release, err := keep(cmd.Process.Pid)
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // It has just begun.
		return errors.Join(err, cmd.Wait())
	}
	defer release()
	err = cmd.Wait()
	if ctx.Err() == nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // Children that it has left in the background.
	}
	endGroup(cmd.Process.Pid)
	return err
}

// judge adds the failures that the tests' report does not have.
func (v *verdict) judge(ctx context.Context, err error, log string) {
	f := outcome.Failure{Class: outcome.Defect, Again: v.step.again()}
	text, _ := os.ReadFile(log) // Without it there is no tail.
	switch {
	case err != nil && ctx.Err() != nil:
		f.Class, f.Error = outcome.Timeout, fmt.Sprintf("ended after %v, the step's limit is %v", v.took.Round(time.Second),
			v.step.limit)
		if v.took < v.step.limit {
			f.Error = fmt.Sprintf("ended after %v, as the whole run was", v.took.Round(time.Second))
		} else if v.step.name == "fetch" {
			f.Class = outcome.Infra // A server that does not answer is not the change's fault either.
		}
	case err != nil && v.step.name == "fetch":
		if !ownMistake().Match(text) {
			f.Class = outcome.Infra
		}
		f.Error = fmt.Sprintf("what the tests need could not be fetched: %v", err)
	case err != nil && len(v.failures) == 0:
		f.Class, f.Error = outcome.StepClass(string(text)), err.Error()
	case err == nil && isFarFewer(v.report.Passed, v.step.tests):
		f.Error = fmt.Sprintf("%d passed, and about %d do usually: where are the others?", v.report.Passed, v.step.tests)
	default:
		return
	}
	if first := outcome.StepError(string(text)); ctx.Err() == nil && err != nil && first != "" {
		f.Error += ": " + first
	}
	f.Tail = outcome.Tail(string(text), 60)
	v.failures = slices.Insert(v.failures, 0, f) // The end of the step is the reason for its tests' failures.
}

// isFarFewer reports whether a number of tests is smaller than another one by more than a twentieth.
func isFarFewer(n, than int) bool { return n*20 < than*19 }

// ownMistake matches the output of fetch if the change itself is wrong: its go.mod or go.sum, an import of a missing
// package of this module, which go looks for in the network, or a name in hack/deps.
func ownMistake() *regexp.Regexp {
	return regexp.MustCompile(`errors parsing \S*go\.(mod|work)|checksum mismatch|malformed go\.sum|` +
		`finding module for package github\.com/stowage-csi/stowage/|does not have what the groups name`)
}

// said returns the sum of the numbers in the pattern's groups in a log; for a pattern without groups, the number of its
// matches.
func said(log, pattern string) (sum int) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(log, -1) {
		if len(match) == 1 {
			sum++
		}
		for _, group := range match[1:] {
			n, _ := strconv.Atoi(group) // A text that is no number counts nothing.
			sum += n
		}
	}
	return sum
}

// unavailable reports whether a step has ended because an external service does not answer: EX_UNAVAILABLE of
// sysexits.h.
func unavailable(err error) bool {
	const code = 69
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == code
}

func (r *runner) passed() bool {
	return !slices.ContainsFunc(r.verdict, func(v verdict) bool { return len(v.failures) > 0 })
}
