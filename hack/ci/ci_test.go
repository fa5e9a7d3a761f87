package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/hack/outcome"
)

func newRunner(t *testing.T) (*runner, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &runner{out: &out, logs: t.TempDir(), begun: time.Now()}, &out
}

// TestClasses has steps that fail in each way that there is, and reads what the last screen says.
func TestClasses(t *testing.T) {
	reports := t.TempDir()
	report := func(name string, r outcome.Report) string {
		path := filepath.Join(reports, name)
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
		return `cp ` + path + ` "$REPORT"`
	}
	failure := outcome.Failure{Package: "m/p", Test: "TestA/x", Class: outcome.Defect, Error: "a_test.go:1: no", Seed: "17", Again: "go test -run TestA m/p"}
	flaky := failure
	flaky.Class = outcome.Flaky
	for _, tt := range []struct {
		step step
		want []string // on the screen; the first is the word in the table
		ok   bool
	}{
		{step{name: "fine", command: "true"}, []string{"ok"}, true},
		{step{name: "build", command: "echo 'a.go:1:2: undefined: x'; exit 1"}, []string{"DEFECT, 1 failed", "error: exit status 1: a.go:1:2: undefined: x", "again: .ci/run build"}, false},
		{step{name: "fetch", command: "echo 'no route to host'; exit 1"}, []string{"INFRA, 1 failed", "no route to host"}, false},
		{step{name: "hangs", command: "sleep 1000", limit: 100 * time.Millisecond}, []string{"TIMEOUT, 1 failed", "the step's limit is 100ms"}, false},
		{
			step{name: "fails", command: report("fails", outcome.Report{Passed: 8, Failed: 1, Failures: []outcome.Failure{failure}}) + "; exit 1"},
			[]string{"DEFECT, 1 failed", "DEFECT fails m/p TestA/x", "error: a_test.go:1: no", "seed:  17", "again: go test -run TestA m/p", "8 passed, 1 failed"}, false,
		},
		{
			step{name: "flaky", command: report("flaky", outcome.Report{Passed: 9, Failures: []outcome.Failure{flaky}})},
			[]string{"ok, 1 FLAKY", "FLAKY flaky m/p TestA/x", "error: a_test.go:1: no"}, true,
		},
		{
			step{name: "empty", command: report("empty", outcome.Report{Passed: 3}), tests: 100},
			[]string{"DEFECT, 1 failed", "3 tests passed, and about 100 do usually"}, false,
		},
	} {
		t.Run(tt.step.name, func(t *testing.T) {
			r, out := newRunner(t)
			if tt.step.limit == 0 {
				tt.step.limit = 2 * time.Minute
			}
			r.one(t.Context(), []step{tt.step})
			if !strings.HasSuffix(strings.TrimSpace(out.String()), tt.want[0]) {
				t.Errorf("the line is %q, want %q at its end", out, tt.want[0])
			}
			if err := r.finish(); (err == nil) != tt.ok {
				t.Errorf("got %v, want success: %t", err, tt.ok)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the screen lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestTheTableIsPrintedWhenTimeIsUp has a run that may take no longer.
func TestTheTableIsPrintedWhenTimeIsUp(t *testing.T) {
	r, out := newRunner(t)
	slow := step{name: "slow", command: "sleep 1000", limit: time.Hour}
	err := r.all(t.Context(), time.Second, step{name: "fetch", command: "true", limit: time.Minute}, []step{slow, {name: "next", command: "true", limit: time.Minute}})
	if err == nil || !strings.Contains(out.String(), "not run: the time for all steps was up") {
		t.Errorf("got %v and\n%s", err, out)
	}
}

// TestNothingRunsAfterAFailedFetch saves the time of steps that would fail for the same reason.
func TestNothingRunsAfterAFailedFetch(t *testing.T) {
	r, out := newRunner(t)
	mark := filepath.Join(t.TempDir(), "mark")
	err := r.all(t.Context(), time.Hour, step{name: "fetch", command: "false", limit: time.Minute}, []step{{name: "next", command: "touch " + mark, limit: time.Minute}})
	if _, missing := os.Stat(mark); err == nil || missing == nil {
		t.Errorf("got %v, and the next step was run:\n%s", err, out)
	}
}

// TestAStepsChildrenEndWithIt looks for what a step that is ended has begun.
func TestAStepsChildrenEndWithIt(t *testing.T) {
	r, _ := newRunner(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := os.WriteFile(pipe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// flock holds the file as long as the child lives.
	r.one(t.Context(), []step{{name: "parent", command: "(exec 9>" + pipe + "; flock 9; sleep 1000) & wait", limit: 300 * time.Millisecond}})
	after := step{name: "after", command: "flock --wait 120 " + pipe + " true", limit: 3 * time.Minute}
	r.one(t.Context(), []step{after})
	if v := r.verdict[1]; len(v.failures) > 0 {
		t.Errorf("the child still holds its lock: %+v", v.failures)
	}
}

func TestNamed(t *testing.T) {
	steps, err := named([]string{"race", "long-race"})
	if err != nil || steps[0].command != "make race-core" || steps[1].command != "make race" {
		t.Errorf("got %v, %v", steps, err)
	}
	if _, err := named([]string{"nothing"}); err == nil || !strings.Contains(err.Error(), "there is no step nothing: use adversary, bench,") {
		t.Errorf("got %v, want the names of all steps", err)
	}
}

func TestTouched(t *testing.T) {
	for file, want := range map[string][]string{
		"docs/architecture.md":         nil,
		"pkg/cloudy/x.go":              {"long-race", "long-bench"},
		"pkg/cloud/wait/look.go":       {"long-race", "long-storms", "long-moto", "long-bench"},
		"tests/vm/run/main.go":         {"long-vm"},
		"deploy/charts/stowage/x.yaml": {"long-programs", "long-e2e", "long-conformance"},
	} {
		if got := stepsFor([]string{"README.md", file}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s touches %q, want %q", file, got, want)
		}
	}
}
