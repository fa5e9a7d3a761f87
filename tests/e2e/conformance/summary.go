package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// verdict is the result of a run.
type verdict struct {
	definition string
	run        int
	report     *report
	problems   []string
	skips      map[string][]spec // by the suite's skip message, and the reason of its allowance
}

// judge lists the problems of a run, and the reasons for which its specs were skipped.
func judge(d definition, run int, r *report, list *exceptions) verdict {
	v := verdict{definition: d.name, run: run, report: r, skips: map[string][]spec{}}
	for _, s := range r.specs {
		switch s.state {
		case failed:
			v.problem("failed: %s: %s", s.id(), firstLine(s.message))
		case skipped:
			a := list.allowed(d.name, s)
			if a == nil {
				v.problem("must run and was skipped: %s: %s", s.id(), firstLine(s.message))
				continue
			}
			reason := firstLine(s.message) + "\n      " + a.Reason
			v.skips[reason] = append(v.skips[reason], s)
		case passed:
		}
	}
	for _, what := range r.broken {
		v.problem("%s", firstLine(what))
	}
	if r.count(passed) == 0 {
		v.problem("no spec passed")
	}
	if r.failed != nil && len(v.problems) == 0 {
		v.problem("ginkgo failed, and no spec: %v", r.failed)
	}
	return v
}

func (v *verdict) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// line summarizes the run in one line.
func (v *verdict) line() string {
	r := v.report
	return fmt.Sprintf("%s, run %d: %d passed, %d failed, %d skipped of %d in %v", v.definition, v.run,
		r.count(passed), r.count(failed), r.count(skipped), len(r.specs), r.took.Round(time.Second))
}

// write prints the counts by test pattern, the reasons of the skips, and the problems.
func (v *verdict) write(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n%s\n\n  passed\tfailed\tskipped\tpattern\n", v.line())
	for _, p := range tally(v.report.specs) {
		fmt.Fprintf(t, "  %d\t%d\t%d\t%s\n", p.counts[passed], p.counts[failed], p.counts[skipped], p.name)
	}
	fmt.Fprintln(t)
	for _, reason := range slices.Sorted(maps.Keys(v.skips)) {
		fmt.Fprintf(t, "  %d skipped: %s\n", len(v.skips[reason]), reason)
		for _, p := range tally(v.skips[reason]) {
			fmt.Fprintf(t, "          %d of %s\n", p.counts[skipped], p.name)
		}
	}
	for _, problem := range v.problems {
		fmt.Fprintf(t, "  %s\n", problem)
	}
	return t.Flush()
}

// pattern is a test pattern with the number of its specs in each state.
type pattern struct {
	name   string
	counts map[state]int
}

// tally counts specs by pattern.
func tally(specs []spec) []pattern {
	counts := map[string]map[state]int{}
	for _, s := range specs {
		if counts[s.pattern] == nil {
			counts[s.pattern] = map[state]int{}
		}
		counts[s.pattern][s.state]++
	}
	var list []pattern
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, pattern{name, counts[name]})
	}
	return list
}

// flaky returns the specs that passed in one run of a definition and failed in another.
func flaky(verdicts []verdict) []string {
	states := map[string]map[state]bool{}
	for _, v := range verdicts {
		for _, s := range v.report.specs {
			id := v.definition + ": " + s.id()
			if states[id] == nil {
				states[id] = map[state]bool{}
			}
			states[id][s.state] = true
		}
	}
	var list []string
	for _, id := range slices.Sorted(maps.Keys(states)) {
		if states[id][passed] && states[id][failed] {
			list = append(list, "flaky: "+id)
		}
	}
	return list
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
