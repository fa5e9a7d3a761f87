package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// tally counts the results of each test, and of each part of one.
type tally map[string]*counts

type counts struct{ passed, failed, skipped int }

// add counts the results in the output of a run with -test.v=test2json, which marks them, so that no test prints one by
// accident.
func (t tally) add(output string) {
	for _, m := range regexp.MustCompile(`\x16--- (PASS|FAIL|SKIP): (\S+) \(`).FindAllStringSubmatch(output, -1) {
		c := t[m[2]]
		if c == nil {
			c = &counts{}
			t[m[2]] = c
		}
		switch m[1] {
		case "PASS":
			c.passed++
		case "FAIL":
			c.failed++
		case "SKIP":
			c.skipped++
		}
	}
}

// judge returns the problems of a package: no tests at all, a skip that is not allowed, and a test that passed fewer
// times than it should have run. Parts of a test may depend on chance, and are judged by their skips only.
func (t tally) judge(pkg string, times int, allowed []outcome.Allowance) (problems []string) {
	if len(t) == 0 {
		return []string{"no test of that name ran"}
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		c := *t[name]
		may := slices.ContainsFunc(allowed, func(a outcome.Allowance) bool {
			return a.Covers(strings.TrimPrefix(pkg, "./"), name, 0)
		})
		isTop := !strings.Contains(name, "/")
		switch {
		case c.skipped > 0 && !may:
			problems = append(problems, fmt.Sprintf("%s was skipped %d times", name, c.skipped))
		case isTop && c.passed+c.skipped < times:
			problems = append(problems, fmt.Sprintf("%s passed %d of %d times, failed %d", name, c.passed, times, c.failed))
		}
	}
	return problems
}

// print prints a line for each test, or the sum if there are many, without the parts of tests.
func (t tally) print(out io.Writer, pkg string) {
	var sum counts
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(t)), func(n string) bool { return strings.Contains(n, "/") })
	const many = 20
	for _, name := range names {
		c := *t[name]
		sum = counts{sum.passed + c.passed, sum.failed + c.failed, sum.skipped + c.skipped}
		if len(names) <= many || c.failed+c.skipped > 0 {
			fmt.Fprintf(out, "%5d passed %5d failed %5d skipped  %s %s\n", c.passed, c.failed, c.skipped, pkg, name)
		}
	}
	fmt.Fprintf(out, "%5d passed %5d failed %5d skipped  %s, %d tests\n", sum.passed, sum.failed, sum.skipped, pkg,
		len(names))
}
