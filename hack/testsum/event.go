package main

import (
	"regexp"
	"strconv"
)

// event is one line of `go test -json` (go doc test2json; the build actions: go help buildjson).
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build actions, instead of Package
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string
}

// counts counts results.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(o counts) {
	c.passed += o.passed
	c.failed += o.failed
	c.skipped += o.skipped
}

// specs parses the last line of a Ginkgo suite's output; ok reports whether the text is such a line. A pending spec was
// disabled by its authors and is not counted.
func specs(output string) (c counts, ok bool) {
	ansi := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	summary := regexp.MustCompile(`-- (\d+) Passed \| (\d+) Failed \| \d+ Pending \| (\d+) Skipped`)
	m := summary.FindStringSubmatch(ansi.ReplaceAllString(output, ""))
	if m == nil {
		return counts{}, false
	}
	for i, n := range []*int{&c.passed, &c.failed, &c.skipped} {
		value, err := strconv.Atoi(m[i+1])
		if err != nil {
			return counts{}, false
		}
		*n = value
	}
	return c, true
}

// seedIn returns the seed that a test printed, as in "seed 17" or "-seed=17". It prefers the seed in the first error: a
// test that uses many seeds printed others before.
func seedIn(first, output string) string {
	for _, text := range []string{first, output} {
		if m := regexp.MustCompile(`(?i)seed[ =:]+(\d+)`).FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}
