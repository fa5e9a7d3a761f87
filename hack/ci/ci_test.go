package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/hack/outcome"
)

func newRunner(t *testing.T) (*runner, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &runner{out: &out, logs: t.TempDir(), begun: time.Now()}, &out
}

// TestClasses has steps that fail in every possible way, and checks the last screen.
func TestClasses(t *testing.T) {
	reports := t.TempDir()
	report := func(name string, r outcome.Report) string {
		path := filepath.Join(reports, name)
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
		return `cp ` + path + ` "$REPORT"`
	}
	failure := outcome.Failure{Package: "m/p", Test: "TestA/x", Class: outcome.Defect, Error: "a_test.go:1: no",
		Seed: "17", Again: "go test -run TestA m/p"}
	flaky := failure
	flaky.Class, flaky.Machine, flaky.Tail = outcome.Flaky, "loadavg 9.00", "its last words"
	for _, tt := range []struct {
		step step
		want []string // on the screen; the first is the word in the table
		ok   bool
	}{
		{step{name: "fine", command: "true"}, []string{"ok"}, true},
		{step{name: "build", command: "echo 'a.go:1:2: undefined: x'; exit 1"},
			[]string{"DEFECT, 1 failed", "error: exit status 1: a.go:1:2: undefined: x", "again: .ci/run build"}, false},
		{step{name: "fetch", command: "echo 'no route to host'; exit 1"}, []string{"INFRA, 1 failed", "no route to host"},
			false},
		{step{name: "fetch", command: "echo 'go: errors parsing go.mod:'; exit 1"},
			[]string{"DEFECT, 1 failed", "error: what the tests need"}, false},
		{step{name: "fetch", command: "echo 'verifying m@v1.0.0: checksum mismatch'; exit 1"},
			[]string{"DEFECT, 1 failed", "checksum mismatch"}, false},
		{step{name: "fetch",
			command: "echo 'go: finding module for package github.com/stowage-csi/stowage/pkg/gone'; exit 1"},
			[]string{"DEFECT, 1 failed", "stowage/pkg/gone"}, false},
		{step{name: "fetch",
			command: "echo 'deps: the archive of this machine does not have what the groups name: x'; exit 1"},
			[]string{"DEFECT, 1 failed", "the groups name: x"}, false},
		{step{name: "fetch", command: "echo 'go: finding module for package golang.org/x/sys/unix'; exit 1"},
			[]string{"INFRA, 1 failed"}, false},
		{step{name: "hangs", command: "sleep 1000", limit: 100 * time.Millisecond},
			[]string{"TIMEOUT, 1 failed", "the step's limit is 100ms"}, false},
		{
			step{name: "fails", command: report("fails", outcome.Report{Passed: 8, Failed: 1,
				Failures: []outcome.Failure{failure}}) + "; exit 1"},
			[]string{"DEFECT, 1 failed", "DEFECT fails m/p TestA/x", "error: a_test.go:1: no", "seed:  17",
				"again: go test -run TestA m/p", "loop devices in use", "8 passed, 1 failed"}, false,
		},
		{
			step{name: "flaky", command: report("flaky", outcome.Report{Passed: 9, Failures: []outcome.Failure{flaky}})},
			[]string{"ok, 1 FLAKY", "FLAKY flaky m/p TestA/x", "error: a_test.go:1: no", "beside: loadavg 9.00",
				"its last words", "1 steps, 0 not run, 1 FLAKY"}, true,
		},
		{step{name: "image", command: "echo 'INFRA: no mirror answers'; echo 'make: *** [Makefile:3: x] Error 1'; exit 2"},
			[]string{"INFRA, 1 failed", "error: exit status 2: INFRA: no mirror answers"}, false},
		{step{name: "image that was made in another way", command: "echo 'INFRA: no registry answers'; echo x; exit 1"},
			[]string{"DEFECT, 1 failed", "error: exit status 1: x"}, false},
		{
			step{name: "asks", command: "echo dial tcp; exit 69", asks: true},
			[]string{"INFRA, not run: the service that it asks does not answer", "\nINFRA asks ", "error: not run: the service",
				"again: .ci/run asks", "the end of asks  :\ndial tcp", "1 steps, 1 not run, 0 FLAKY"}, true,
		},
		{step{name: "asks nobody", command: "exit 69"}, []string{"DEFECT, 1 failed", "exit status 69"}, false},
		{
			step{name: "empty", command: report("empty", outcome.Report{Passed: 94}), tests: 100},
			[]string{"DEFECT, 1 failed", "94 passed, and about 100 do usually"}, false,
		},
		{
			step{name: "grown", command: report("grown", outcome.Report{Passed: 106}), tests: 100},
			[]string{"ok", "OLD NUMBER of grown: 106 passed, and hack/ci/steps.go has 100"}, true,
		},
		{
			step{name: "one of two", command: report("one", outcome.Report{Passed: 1}), tests: 2},
			[]string{"DEFECT, 1 failed", "1 passed, and about 2 do usually"}, false,
		},
		{
			step{name: "few targets", command: "echo 'fuzz: 2 targets, nothing found'", tests: 18, says: `fuzz: (\d+) targets`},
			[]string{"DEFECT, 1 failed", "2 passed, and about 18 do usually"}, false,
		},
		{
			step{name: "all cases", command: "echo pool a: 7; echo pool b: 9", tests: 2, says: `(?m)^pool \w:`},
			[]string{"ok", "2 passed"}, true,
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

// TestTheTableIsPrintedWhenTimeIsUp has a run that is ended while a step works, and one without any time.
func TestTheTableIsPrintedWhenTimeIsUp(t *testing.T) {
	const says = "not run: the time for all steps was up"
	begun := filepath.Join(t.TempDir(), "begun")
	if err := unix.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		_, _ = os.ReadFile(begun) // until the step has written
		end()
	}()
	fetch := step{name: "fetch", command: "true", limit: 2 * time.Minute}
	slow := step{name: "slow", command: "echo begun >" + begun + "; sleep 1000", limit: time.Hour}
	r, out := newRunner(t)
	err := r.all(ctx, time.Hour, fetch, []step{slow, {name: "next", command: "true", limit: 2 * time.Minute}})
	if err == nil || !strings.Contains(out.String(), says) || !strings.Contains(out.String(), "3 steps, 1 not run") {
		t.Errorf("ended while a step works: got %v and\n%s", err, out)
	}
	r, out = newRunner(t)
	if err := r.all(t.Context(), 0, fetch, []step{slow}); err == nil || !strings.Contains(out.String(), says) {
		t.Errorf("without any time: got %v and\n%s", err, out)
	}
}

// TestNothingRunsAfterAFailedFetch saves the time of steps that would fail for the same reason.
func TestNothingRunsAfterAFailedFetch(t *testing.T) {
	r, out := newRunner(t)
	mark := filepath.Join(t.TempDir(), "mark")
	err := r.all(t.Context(), time.Hour, step{name: "fetch", command: "false", limit: 2 * time.Minute},
		[]step{{name: "next", command: "touch " + mark, limit: 2 * time.Minute}})
	if _, missing := os.Stat(mark); err == nil || missing == nil {
		t.Errorf("got %v, and the next step was run:\n%s", err, out)
	}
}

// TestNothingRunsBesideWhoDisturbs has a step that must run alone behind others of both kinds, which fail while it has
// not ended.
func TestNothingRunsBesideWhoDisturbs(t *testing.T) {
	r, out := newRunner(t)
	mark := filepath.Join(t.TempDir(), "mark")
	after := step{name: "after", command: "test -e " + mark, limit: 2 * time.Minute}
	beside := after
	beside.name, beside.waits = "beside", true
	disturbs := step{name: "disturbs", command: "sleep 0.2; touch " + mark, limit: 2 * time.Minute, alone: true}
	err := r.all(t.Context(), time.Hour, step{name: "fetch", command: "true", limit: 2 * time.Minute},
		[]step{after, beside, disturbs})
	if err != nil {
		t.Errorf("got %v, and another step ran before it had ended:\n%s", err, out)
	}
}

// TestAStepsChildrenEndWithIt checks that a step that is ended leaves no child.
func TestAStepsChildrenEndWithIt(t *testing.T) {
	r, _ := newRunner(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := os.WriteFile(pipe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// flock holds the file as long as the child lives.
	r.one(t.Context(), []step{{name: "parent", command: "(exec 9>" + pipe + "; flock 9; sleep 1000) & wait",
		limit: 300 * time.Millisecond}})
	after := step{name: "after", command: "flock --wait 120 " + pipe + " true", limit: 3 * time.Minute}
	r.one(t.Context(), []step{after})
	if v := r.verdict[1]; len(v.failures) > 0 {
		t.Errorf("the child still holds its lock: %+v", v.failures)
	}
}

// TestNothingIsLeftOfAStepThatPassed has a step that leaves a child in the background, which holds the step's log open.
func TestNothingIsLeftOfAStepThatPassed(t *testing.T) {
	r, _ := newRunner(t)
	lock := filepath.Join(t.TempDir(), "lock")
	r.one(t.Context(), []step{
		{name: "parent", command: "exec 9>" + lock + "; flock 9; sleep 1000 & true", limit: 2 * time.Minute},
		{name: "after", command: "flock --wait 120 " + lock + " true", limit: 3 * time.Minute},
	})
	if !r.passed() {
		t.Errorf("the child still holds its lock: %+v", r.verdict)
	}
}

// TestWhatLeftItsGroupEndsToo has a step that leaves a process in a session of its own, whose child has an empty
// environment. A process that the step did not start runs on.
func TestWhatLeftItsGroupEndsToo(t *testing.T) {
	other, said := exec.CommandContext(t.Context(), "cat"), &bytes.Buffer{}
	other.Stdout = said
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	r, out := newRunner(t)
	lock := filepath.Join(t.TempDir(), "lock")
	leaves := `setsid --fork bash -c 'exec 9>"$0"; flock 9; env -i sleep 1000 & echo held >&9; wait' ` + lock +
		`; until test -s ` + lock + `; do sleep 0.1; done`
	r.one(t.Context(), []step{
		{name: "leaves", command: leaves, limit: 2 * time.Minute},
		{name: "after", command: "flock --wait 120 " + lock + " true", limit: 3 * time.Minute},
	})
	if err := r.finish(); err != nil {
		t.Errorf("the process still holds its lock: %v\n%s", err, out)
	}
	named := regexp.MustCompile(`LEFT leaves, and ended after it: \d+ bash -c exec 9>.*; flock 9; `)
	if !named.Match(out.Bytes()) || strings.Count(out.String(), "LEFT ") != 1 {
		t.Errorf("the screen does not name it:\n%s", out)
	}
	_, wrote := in.Write([]byte("here"))
	if err := errors.Join(wrote, in.Close(), other.Wait()); err != nil || said.String() != "here" {
		t.Errorf("another process was ended: %v, it said %q", err, said)
	}
}

// endedAt runs a step, and ends it when it has made the file MARK.
func (r *runner) endedAt(t *testing.T, command string) {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "mark")
	t.Setenv("MARK", mark)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		defer end()
		for _, err := os.Stat(mark); err != nil && ctx.Err() == nil; _, err = os.Stat(mark) {
			<-time.After(10 * time.Millisecond)
		}
	}()
	r.one(ctx, []step{{name: "cut", command: command, limit: 2 * time.Minute}})
}

// TestAStepThatIsEndedStillReports has a step whose shell ends at once when told to, and its child later.
func TestAStepThatIsEndedStillReports(t *testing.T) {
	r, _ := newRunner(t)
	r.endedAt(t, `(trap 'sleep 1; echo "{\"Passed\": 7}" >"$REPORT"; exit' TERM; touch "$MARK"; while true; do sleep 0.1; done) & wait`)
	if v := r.verdict[0]; v.report.Passed != 7 || v.failures[0].Class != outcome.Timeout {
		t.Errorf("got %+v, want a report and a time-out", v)
	}
}

// TestATimeoutComesFirst has a step that reports a defect before it is ended: the table shows the time-out.
func TestATimeoutComesFirst(t *testing.T) {
	r, out := newRunner(t)
	command := `echo '{"Failed": 1, "Failures": [{"Class": "DEFECT", "Test": "TestA"}]}' >"$REPORT"; touch "$MARK"; sleep 1000`
	r.endedAt(t, command)
	if !strings.Contains(out.String(), "TIMEOUT, 2 failed") {
		t.Errorf("the line is %q", out)
	}
}

// TestAFetchThatHangs has a server that does not answer within the step's limit.
func TestAFetchThatHangs(t *testing.T) {
	r, _ := newRunner(t)
	// Stimulus: the step does not end.
	r.one(t.Context(), []step{{name: "fetch", command: "sleep 1000", limit: 50 * time.Millisecond}})
	if f := r.verdict[0].failures[0]; f.Class != outcome.Infra || !strings.Contains(f.Error, "the step's limit is 50ms") {
		t.Errorf("got %+v, want INFRA and the limit", f)
	}
}

// TestAStepStartsWithoutAReport runs a step twice: the second time it reports nothing.
func TestAStepStartsWithoutAReport(t *testing.T) {
	r, _ := newRunner(t)
	s := step{name: "twice",
		command: `test -e ` + r.logs + `/mark || echo '{"Passed": 7}' >"$REPORT"; touch ` + r.logs + `/mark`,
		limit:   2 * time.Minute, tests: 7}
	r.one(t.Context(), []step{s, s})
	if r.verdict[1].report.Passed != 0 || len(r.verdict[1].failures) == 0 {
		t.Errorf("got %+v, want that no test passed", r.verdict[1])
	}
}

// TestStepsEndWithTheRunner kills the runner, which can no longer end its steps: they end all the same.
func TestStepsEndWithTheRunner(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	if os.Getenv("CI_TEST_LOCK") != "" {
		r, _ := newRunner(t)
		r.one(t.Context(), []step{{name: "long", command: `exec 9>"$CI_TEST_LOCK"; flock 9; echo held >&9; sleep 1000`,
			limit: time.Hour}})
		return
	}
	runner := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestStepsEndWithTheRunner$")
	runner.Env = append(os.Environ(), "CI_TEST_LOCK="+lock)
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	for text := []byte(nil); len(text) == 0; text, _ = os.ReadFile(lock) {
		<-time.After(10 * time.Millisecond)
	}
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait() // It was killed.
	if err := exec.CommandContext(t.Context(), "flock", "--wait", "120", lock, "true").Run(); err != nil {
		t.Errorf("the step still holds its lock: %v", err)
	}
}

// TestAgainNamesTheForm checks the command that repeats a step of the long form: the gate may have a step of the same
// name.
func TestAgainNamesTheForm(t *testing.T) {
	for _, s := range long() {
		if again, err := named(strings.Fields(s.again())[1:]); err != nil || again[0].command != s.command {
			t.Errorf("%s repeats %s, and not %s: %v", s.again(), again[0].command, s.command, err)
		}
	}
	r, _ := newRunner(t)
	r.seed = "17"
	r.one(t.Context(), []step{{name: "storms", command: "false", limit: 2 * time.Minute, long: true}})
	if f := r.verdict[0].failures[0]; f.Again != "CI_SEED=17 .ci/run long-storms" {
		t.Errorf("got %q", f.Again)
	}
}

func TestNamed(t *testing.T) {
	steps, err := named([]string{"race", "long-race"})
	if err != nil || steps[0].command != "make race-core" || steps[1].command != "make race" {
		t.Errorf("got %v, %v", steps, err)
	}
	if _, err := named([]string{"nothing"}); err == nil ||
		!strings.Contains(err.Error(), "there is no step nothing: use adversary, bench,") {
		t.Errorf("got %v, want the names of all steps", err)
	}
}
