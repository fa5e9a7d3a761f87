package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/hack/outcome"
)

const (
	kept  = 40 // the number of lines of a failed test that are printed again at the end
	tries = 3  // the maximum number of failed top-level tests that are rerun; more failures are not random
)

// failure is a failed top-level test, or a package that failed as a whole.
type failure struct {
	id    test
	parts []test // it and its subtests, in the order of their failures
	text  string // their output
	count int    // the number of failures that it counts as, including those of Ginkgo's specs
	died  bool   // it had not ended when its package did
	cut   bool   // its package had not ended when the run did; the first line of the output says with which tests
	flaky bool

	machine string // the state of the machine when it failed; a rerun happens in another one
}

// fail records a failed test with its output.
func (s *summary) fail(id test, text string) *failure {
	top, _, _ := strings.Cut(id.name, "/")
	at := slices.IndexFunc(s.failed, func(f *failure) bool { return f.id == test{id.pkg, top} })
	if at < 0 {
		at, s.failed = len(s.failed), append(s.failed, &failure{id: test{id.pkg, top}, machine: outcome.Machine()})
	}
	f := s.failed[at]
	f.parts, f.text, f.count = append(f.parts, id), f.text+text, f.count+1
	if c := s.specs[id]; c != nil {
		f.count += c.failed
	}
	return f
}

// isChance reports whether the failure may be random.
func (f *failure) isChance() bool {
	return f.id.name != "" && !f.died && !outcome.IsGrave(f.text)
}

// part returns the first failed part that has no failed part itself.
func (f *failure) part() string {
	for _, id := range f.parts {
		has := func(other test) bool { return strings.HasPrefix(other.name, id.name+"/") }
		if !slices.ContainsFunc(f.parts, has) {
			return id.name
		}
	}
	return f.id.name
}

func (s *summary) class(f *failure) outcome.Class {
	switch {
	case f.flaky:
		return outcome.Flaky
	case s.cut && (f.died || f.id.name == ""):
		return outcome.Timeout // the end of the run ended it
	case strings.Contains(f.text, "panic: test timed out"):
		return outcome.Timeout
	case !outcome.IsGrave(f.text) && outcome.IsInfra(outcome.FirstError(f.text, s.sources.logged(f.id.pkg))):
		return outcome.Infra
	}
	return outcome.Defect
}

// again reruns the failed top-level tests, each alone.
func (s *summary) again(c command) {
	if len(s.failed) > tries || s.broken > 0 || s.cut {
		return
	}
	for _, f := range s.failed {
		if !f.isChance() {
			continue
		}
		fmt.Fprintf(s.out, "once more, alone: %s %s\n", f.id.pkg, f.id.name)
		alone := newSummary(s.out, s.allowed)
		err := c.start(context.Background(), c.alone(f.id.pkg, f.id.name), alone)
		// A part that was not run this time has not passed.
		failedStill := slices.ContainsFunc(f.parts, func(id test) bool { return !alone.passed[id] })
		if err == nil && alone.verdict() == nil && !failedStill {
			f.flaky = true
			s.total.failed -= f.count
			s.total.passed += f.count
		}
	}
}

// failures returns the failures for the report.
func (s *summary) failures() (all []outcome.Failure) {
	for _, f := range s.failed {
		first := outcome.FirstError(f.text, s.sources.logged(f.id.pkg))
		if f.cut {
			first, _, _ = strings.Cut(f.text, "\n")
		}
		all = append(all, outcome.Failure{
			Package: f.id.pkg, Test: f.part(), More: len(f.parts) - 1, Class: s.class(f), Again: s.repeat(f),
			Error: first, Seed: seedIn(first, f.text), Tail: outcome.Tail(f.text, kept),
			Machine: f.machine,
		})
	}
	for _, line := range s.refusals {
		all = append(all, outcome.Failure{Class: outcome.Defect, Error: "a skip that the list does not allow: " + line})
	}
	return all
}
