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

// report is what came of one run.
type report struct {
	specs  []spec
	took   time.Duration
	broken []string // what failed that is no spec, such as the suite's own preparations
	failed error    // how ginkgo ended
}

// spec is one spec that was chosen to run.
type spec struct {
	pattern string // of the volume, as "Dynamic PV (default fs)"
	suite   string // as "subPath"
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

// id names a spec within its definition.
func (s spec) id() string { return fmt.Sprintf("[%s] %s: %s", s.pattern, s.suite, s.name) }

// The parts of ginkgo's report that are used here (types.Report and types.SpecReport of ginkgo v2).
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

// add takes a spec into the report, unless it was not chosen: such a one is skipped without a message.
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

// stateOf is failed for all that is neither passed nor skipped: failed, panicked, timed out, interrupted, aborted,
// pending.
func stateOf(text string) state {
	switch s := state(text); s {
	case passed, skipped:
		return s
	case failed:
	}
	return failed
}

// patternOf takes the pattern and the name of the suite from a container's text, as
// "[Testpattern: Dynamic PV (ext4)] [Slow] volumes".
func patternOf(containers []string) (pattern, suite string) {
	form := regexp.MustCompile(`^\[Testpattern: (.*?)\](?: \[[^]]*\])* (\S.*)$`)
	for i, text := range containers {
		if m := form.FindStringSubmatch(text); m != nil {
			return m[1], strings.Join(append([]string{m[2]}, containers[i+1:]...), " ")
		}
	}
	return "none", strings.Join(containers, " ")
}

// count counts the specs in a state.
func (r *report) count(want state) int {
	n := 0
	for _, s := range r.specs {
		if s.state == want {
			n++
		}
	}
	return n
}
