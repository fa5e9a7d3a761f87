package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// noAnswer is the reason for which a step that asks an external service was not run.
const noAnswer = "not run: the service that it asks does not answer"

// line returns the step's line in the table.
func (v verdict) line() string {
	word := "ok"
	switch {
	case len(v.failures) > 0:
		word = fmt.Sprintf("%s, %d failed", v.failures[0].Class, len(v.failures))
	case len(v.unasked) > 0:
		word = fmt.Sprintf("%s, %s", outcome.Infra, noAnswer)
	case v.flaky() > 0:
		word = fmt.Sprintf("ok, %d FLAKY", v.flaky())
	}
	tests := ""
	if r := v.report; r.Passed+r.Failed+r.Skipped > 0 {
		tests = fmt.Sprintf("%6d passed %3d failed %3d skipped", r.Passed, r.Failed, r.Skipped)
	}
	return fmt.Sprintf("%-12s %5.0f s of %5.0f  until %5.0f s  %-36s %s",
		v.step.name, v.took.Seconds(), v.step.limit.Seconds(), v.until.Seconds(), tests, word)
}

func (v verdict) flaky() (n int) {
	for _, f := range v.report.Failures {
		if f.Class == outcome.Flaky {
			n++
		}
	}
	return n
}

// finish prints the ends of the failures' logs, the table, and a block for each failure, so that the last screen says
// it all.
func (r *runner) finish() error {
	failed, flaky, missed := 0, 0, 0
	var sum outcome.Report
	for _, v := range r.verdict {
		sum.Passed, sum.Failed, sum.Skipped = sum.Passed+v.report.Passed, sum.Failed+v.report.Failed,
			sum.Skipped+v.report.Skipped
		failed, flaky = failed+len(v.failures), flaky+v.flaky()
		if len(v.unasked) > 0 || v.took == 0 {
			missed++
		}
		for _, f := range v.shown() {
			fmt.Fprintf(r.out, "\n===== the end of %s %s %s:\n%s\n", v.step.name, f.Package, f.Test, f.Tail)
		}
	}
	fmt.Fprintln(r.out, "\n===== steps")
	for _, v := range r.verdict {
		fmt.Fprintln(r.out, v.line())
	}
	for _, v := range r.verdict {
		r.blocks(v)
	}
	if _, dropped := unsteered(os.Environ()); len(dropped) > 0 {
		fmt.Fprintf(r.out, "\nvariables of the environment that were not used by the steps: %s\n",
			strings.Join(dropped, ", "))
	}
	fmt.Fprintf(r.out, "\nall %.0f s, %d steps, %d not run, %d FLAKY; logs in %s\n", time.Since(r.begun).Seconds(),
		len(r.verdict), missed, flaky, r.logs)
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", sum.Passed, sum.Failed, sum.Skipped)
	if failed > 0 {
		return fmt.Errorf("%d failures", failed)
	}
	if len(r.verdict) == 0 {
		return errors.New("no step was run")
	}
	return nil
}

// shown returns the failures of a step, its FLAKY tests, and that it was not run.
func (v verdict) shown() []outcome.Failure {
	all := slices.Concat(v.failures, v.unasked)
	for _, f := range v.report.Failures {
		if f.Class == outcome.Flaky {
			all = append(all, f)
		}
	}
	return all
}

// blocks prints the failures of a step, its FLAKY tests, the processes that it left running, and a number of tests
// that is out of date.
func (r *runner) blocks(v verdict) {
	for _, f := range v.shown() {
		fmt.Fprintf(r.out, "\n%s %s %s %s\n", f.Class, v.step.name, f.Package, f.Test)
		if f.More > 0 {
			fmt.Fprintf(r.out, "  and:   %d more parts of the test\n", f.More)
		}
		for _, line := range [][2]string{{"error", f.Error}, {"seed", f.Seed}, {"again", f.Again}, {"beside", f.Machine}} {
			if line[1] != "" {
				fmt.Fprintf(r.out, "  %-6s %s\n", line[0]+":", line[1])
			}
		}
	}
	for _, name := range v.left {
		fmt.Fprintf(r.out, "\nLEFT %s, and ended after it: %s\n", v.step.name, name)
	}
	if passed, usual := v.report.Passed, v.step.tests; usual > 0 && isFarFewer(usual, passed) {
		fmt.Fprintf(r.out, "\nOLD NUMBER of %s: %d passed, and hack/ci/steps.go has %d: raise it, or lost tests go unseen\n",
			v.step.name, passed, usual)
	}
}
