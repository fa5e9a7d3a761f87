package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// reportFile is the name of ginkgo's report.
const reportFile = "report.json"

// report is the outcome of one run.
type report struct {
	specs  []spec
	took   time.Duration
	broken []string // failures outside specs, for example in the suite's setup
	failed error    // ginkgo's own error
}

// spec is one spec that was selected to run.
type spec struct {
	pattern string // of the volume, for example "Dynamic PV (default fs)"
	suite   string // for example "subPath"
	name    string
	state   state
	message string // of a failure or a skip
	took    time.Duration
}

// state is how a spec ended.
type state string

const (
	passed  state = "passed"
	failed  state = "failed"
	skipped state = "skipped"
)

// id identifies a spec within its definition.
func (s spec) id() string { return fmt.Sprintf("[%s] %s: %s", s.pattern, s.suite, s.name) }

// The fields of ginkgo's report that this package reads (types.Report and types.SpecReport of ginkgo v2).
type (
	ginkgoReport struct {
		RunTime     time.Duration
		SpecReports []ginkgoSpec
	}
	ginkgoSpec struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		RunTime                 time.Duration
		Failure                 struct{ Message string }
	}
)

func readReport(path string) (*report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the suite left no report: %w", err)
	}
	var list []ginkgoReport
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &report{}
	for _, g := range list {
		r.took += g.RunTime
		for _, s := range g.SpecReports {
			r.add(s)
		}
	}
	return r, nil
}

// add adds a spec to the report unless it was not selected: ginkgo skips such a spec without a message.
func (r *report) add(g ginkgoSpec) {
	outcome := stateOf(g.State)
	if g.LeafNodeType != "It" {
		if outcome == failed {
			r.broken = append(r.broken, strings.TrimSpace(g.LeafNodeType+" "+g.LeafNodeText+": "+g.Failure.Message))
		}
		return
	}
	if outcome == skipped && g.Failure.Message == "" {
		return
	}
	s := spec{name: g.LeafNodeText, state: outcome, message: g.Failure.Message, took: g.RunTime}
	s.pattern, s.suite = patternOf(g.ContainerHierarchyTexts)
	r.specs = append(r.specs, s)
}

// stateOf returns failed for every state except passed and skipped: failed, panicked, timed out, interrupted, aborted,
// pending.
func stateOf(text string) state {
	switch s := state(text); s {
	case passed, skipped:
		return s
	case failed:
	}
	return failed
}

// patternOf takes the pattern and the suite's name from a container's text, for example "[Testpattern: Dynamic PV
// (ext4)] [Slow] volumes".
func patternOf(containers []string) (pattern, suite string) {
	form := regexp.MustCompile(`^\[Testpattern: (.*?)\](?: \[[^]]*\])* (\S.*)$`)
	for i, text := range containers {
		if m := form.FindStringSubmatch(text); m != nil {
			return m[1], strings.Join(append([]string{m[2]}, containers[i+1:]...), " ")
		}
	}
	return "none", strings.Join(containers, " ")
}

// count returns the number of specs in a state.
func (r *report) count(want state) int {
	n := 0
	for _, s := range r.specs {
		if s.state == want {
			n++
		}
	}
	return n
}
