package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// TestAgain runs a module whose tests fail in every way.
func TestAgain(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		class      outcome.Class
		error      string
		fails      bool
	}{
		{"wrong assertion", `t.Error("got 1, want 2, seed 17")`, outcome.Defect, "a_test.go:11: got 1, want 2, seed 17",
			true},
		{"a log before the error", "t.Log(`3 done`)\nlog := t.Logf\nlog(`4 done`)\nt.Error(`got 1`)\nt.Log(`end`)",
			outcome.Defect, "a_test.go:14: got 1", true},
		{
			"an error that a function tells of", "t.Log(`3 done`)\nfunc() { t.Helper(); t.Error(`got 1`) }()\nt.Log(`end`)",
			outcome.Defect, "a_test.go:12: got 1", true,
		},
		{"a download", "t.Fatal(`INFRA: no mirror answers`)", outcome.Infra, "a_test.go:11: INFRA: no mirror answers", true},
		{"logs alone", "t.Log(`3 done`)\nt.Log(`4 is not`)\nt.FailNow()", outcome.Defect, "a_test.go:12: 4 is not", true},
		{
			"every second time", `if _, err := os.Stat("ran"); err != nil { _ = os.WriteFile("ran", nil, 0o600); t.Error("the first time") }`,
			outcome.Flaky, "a_test.go:11: the first time", false,
		},
		{
			"a panic every second time",
			`if _, err := os.Stat("ran"); err != nil { _ = os.WriteFile("ran", nil, 0o600); panic("boom") }`,
			outcome.Defect, "panic: boom [recovered, repanicked]", true,
		},
		{
			"a violation every second time", `t.Log("seed 16: well"); if _, err := os.Stat("ran"); err != nil { _ = os.WriteFile("ran", nil, 0o600); t.Error("VIOLATION with seed 17: lost") }`,
			outcome.Defect, "a_test.go:11: VIOLATION with seed 17: lost", true,
		},
		{
			"a signal every second time", `if _, err := os.Stat("ran"); err != nil { _ = os.WriteFile("ran", nil, 0o600); p, _ := os.FindProcess(os.Getpid()); _ = p.Kill() }`,
			outcome.Defect, "it had not ended when its package did", true,
		},
		{
			"an exit every second time",
			`if _, err := os.Stat("ran"); err != nil { _ = os.WriteFile("ran", nil, 0o600); os.Exit(1) }`,
			outcome.Defect, "it had not ended when its package did", true,
		},
		{"a hang", `time.Sleep(time.Hour)`, outcome.Timeout, "panic: test timed out after 2s", true},
		{"a broken build", `undefined()`, outcome.Defect, "./a_test.go:11:31: undefined: undefined", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			timeout := "-timeout=10m"
			if tt.class == outcome.Timeout {
				timeout = "-timeout=2s"
			}
			r, err := runModule(t, tt.body, timeout)
			if (err != nil) != tt.fails {
				t.Errorf("got error %v, want one: %t", err, tt.fails)
			}
			if len(r.Failures) != 1 || r.Failures[0].Class != tt.class || r.Failures[0].Error != tt.error {
				t.Fatalf("got %+v, want one failure of class %s: %s", r.Failures, tt.class, tt.error)
			}
			if !strings.Contains(r.Failures[0].Machine, "loop devices in use") {
				t.Errorf("got %q, want the state of the machine", r.Failures[0].Machine)
			}
			if f := r.Failures[0]; f.Test != "" && !strings.Contains(f.Again, "-run '^TestA$/^part$'") {
				t.Errorf("got %q, want the command for the part that failed", f.Again)
			}
			if f := r.Failures[0]; strings.Contains(tt.body, "seed 17") && f.Seed != "17" {
				t.Errorf("got the seed %q, want 17", f.Seed)
			}
		})
	}
}

// TestAgainTellsNothingAboutTheRest has a test that fails only the first time, and another failure that is not random.
func TestAgainTellsNothingAboutTheRest(t *testing.T) {
	const first = `if _, err := os.Stat("ran"); err != nil { _ = os.WriteFile("ran", nil, 0o600); `
	for _, tt := range []struct {
		name, test, more string
		classes          []outcome.Class
		error            string
	}{
		{"TestMain's end", first + `t.Error("chance") }`,
			`func TestMain(m *testing.M) { code := m.Run(); println("a mount is left"); os.Exit(code | 2) }`,
			[]outcome.Class{outcome.Defect, outcome.Defect}, "a mount is left"},
		{"a part that is gone", first + `t.Run("x", func(t *testing.T) { t.Error("no") }) }`, ``,
			[]outcome.Class{outcome.Defect}, ""},
		{
			"a time-out after the end of another test", ``,
			`func TestC(t *testing.T) { t.Parallel(); time.Sleep(300 * time.Millisecond) }` + "\n" +
				`func TestD(t *testing.T) { t.Parallel(); ` + first + `time.Sleep(time.Hour) } }`,
			[]outcome.Class{outcome.Timeout}, "panic: test timed out after 15s",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			timeout := "-timeout=10m"
			if tt.classes[0] == outcome.Timeout {
				timeout = "-timeout=15s" // enough for the others, even on a busy machine
			}
			r, err := runModule(t, tt.test, timeout, tt.more)
			var classes []outcome.Class
			var text strings.Builder
			for _, f := range r.Failures {
				classes = append(classes, f.Class)
				text.WriteString(f.Error + f.Tail)
			}
			if err == nil || !slices.Equal(classes, tt.classes) || !strings.Contains(text.String(), tt.error) {
				t.Errorf("got %v and %+v, want %v with %q", err, r.Failures, tt.classes, tt.error)
			}
		})
	}
}

// standIn makes a program in place of go, which reports a failed test when it is run for the first time, with what its
// package and another test say and how that ends, and that the test passed when it is run again.
func standIn(t *testing.T, dir, pkg, other, ends string) string {
	t.Helper()
	quoted := func(text string) string { return strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(text) }
	write(t, dir, map[string]string{"go": "#!/bin/bash\n" + `result=pass code=0
test -e ran || result=fail code=1
touch ran
echo '{"Action":"start","Package":"m/p"}'
echo '{"Action":"run","Package":"m/p","Test":"TestB"}'
echo '{"Action":"output","Package":"m/p","Test":"TestB","Output":"` + quoted(other) + `"}'
echo '{"Action":"` + ends + `","Package":"m/p","Test":"TestB"}'
echo '{"Action":"run","Package":"m/p","Test":"TestA"}'
echo '{"Action":"output","Package":"m/p","Test":"TestA","Output":"    a_test.go:1: the first time\n"}'
echo '{"Action":"'$result'","Package":"m/p","Test":"TestA"}'
echo '{"Action":"output","Package":"m/p","Output":"` + quoted(pkg) + `FAIL\n"}'
echo '{"Action":"'$result'","Package":"m/p"}'
exit $code
`})
	if err := os.Chmod(filepath.Join(dir, "go"), 0o700); err != nil { // it is a program
		t.Fatal(err)
	}
	return filepath.Join(dir, "go")
}

// TestARaceBesideAFailureByChance has a race that go reports outside of the test that fails: then go's verdict does not
// name the race.
func TestARaceBesideAFailureByChance(t *testing.T) {
	skips := filepath.Join(t.TempDir(), "skips")
	if err := os.WriteFile(skips, []byte("p TestB it may be skipped\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const race = "==================\nWARNING: DATA RACE\nWrite at 0x1 by goroutine 7:\n"
	for _, tt := range []struct {
		name, pkg, other, ends string
		fails                  bool
	}{
		{"no race", "", "", "pass", false},
		{"after all tests", race, "", "pass", true},
		{"in the output of a test that passed", "", race, "pass", true},
		{"in the output of a test that was skipped", "", race, "skip", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			program, report := standIn(t, dir, tt.pkg, tt.other, tt.ends), filepath.Join(dir, "report")
			err := run(t.Context(), options{report: report, dir: dir, skips: skips}, []string{program, "test", "-json", "./..."},
				nil, io.Discard)
			r, _ := outcome.Read(report) // Missing content is detected below.
			defects := slices.DeleteFunc(r.Failures, func(f outcome.Failure) bool { return f.Class != outcome.Defect })
			if (err != nil) != tt.fails || (len(defects) > 0) != tt.fails {
				t.Errorf("got %v and %+v, want a defect: %t", err, r.Failures, tt.fails)
			}
		})
	}
}

// TestNothingRunsAgainInARunThatIsEnded ends a run while a test is running.
func TestNothingRunsAgainInARunThatIsEnded(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	dir := t.TempDir()
	write(t, dir, map[string]string{"go": "#!/bin/bash\n" + `echo ran >> ran
echo '{"Action":"start","Package":"m/p"}'
echo '{"Action":"run","Package":"m/p","Test":"TestA"}'
echo '{"Action":"fail","Package":"m/p","Test":"TestA"}'
echo '{"Action":"run","Package":"m/p","Test":"TestB"}'
echo '{"Action":"output","Package":"m/p","Test":"TestB","Output":"    b_test.go:9: waits for the disk\n"}'
exit 1
`})
	if err := os.Chmod(filepath.Join(dir, "go"), 0o700); err != nil { // it is a program
		t.Fatal(err)
	}
	report := filepath.Join(dir, "report")
	err := run(ctx, options{report: report, dir: dir}, []string{filepath.Join(dir, "go"), "test", "-json", "./..."}, nil,
		io.Discard)
	r, _ := outcome.Read(report) // Missing content is detected below.
	if err == nil || len(r.Failures) != 2 || r.Failures[0].Class != outcome.Defect ||
		r.Failures[1].Class != outcome.Timeout ||
		r.Failures[1].Error != "it did not end, with m/p TestB" || r.Failed != 1 ||
		!strings.Contains(r.Failures[1].Tail, "--- m/p TestB\n    b_test.go:9: waits for the disk") ||
		!strings.Contains(r.Failures[1].Again, " test -count=1 m/p") {
		t.Errorf("got %v and %+v, want the failure and a time-out with the output", err, r.Failures)
	}
	if ran, _ := os.ReadFile(filepath.Join(dir, "ran")); string(ran) != "ran\n" {
		t.Errorf("it ran %q", ran)
	}
}

// runModule runs the tests of a module in which one test has the given body.
func runModule(t *testing.T, body, timeout string, more ...string) (outcome.Report, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.24\n",
		"a_test.go": "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestA(t *testing.T) " +
			"{\n\tt.Run(\"part\", func(t *testing.T) {\n" +
			"\t\t_, _ = os.Getpid, time.Now; " + body + "\n\t})\n}\n\nfunc TestB(*testing.T) {}\n" + strings.Join(more, "\n"),
	})
	report := filepath.Join(dir, "report")
	var out bytes.Buffer
	err := run(t.Context(), options{report: report, dir: dir},
		[]string{"go", "test", "-json", "-count=1", timeout, "./..."}, nil, &out)
	t.Logf("%s", &out)
	r, read := outcome.Read(report)
	if read != nil {
		t.Fatal(read)
	}
	return r, err
}

// TestAgainHasTheEnvironment checks the command for a failure under settings that a user's shell does not have.
func TestAgainHasTheEnvironment(t *testing.T) {
	t.Setenv("GOFLAGS", "-trimpath -tags=x")
	t.Setenv("CGO_ENABLED", "0")
	r, err := runModule(t, `t.Error("no")`, "-timeout=10m")
	if want := " && CGO_ENABLED=0 GOFLAGS='-trimpath -tags=x' go test "; err == nil ||
		!strings.Contains(r.Failures[0].Again, want) {
		t.Errorf("got %v and %+v, want the command with%s", err, r.Failures, want)
	}
	race := []string{"go", "test", "-json", "-race", "./..."}
	if got := environment(race); got != "GOFLAGS='-trimpath -tags=x' " {
		t.Errorf("got %q, want what the race detector can be built with", got)
	}
}

// TestAgainOfEventsThatOthersPrint reads events of tests that go test did not run.
func TestAgainOfEventsThatOthersPrint(t *testing.T) {
	for pkg, path := range map[string]string{
		"github.com/stowage-csi/stowage/pkg/x": "./pkg/x", "example.org/x": "example.org/x",
	} {
		report := filepath.Join(t.TempDir(), "report")
		in := `{"Action":"fail","Package":"` + pkg + `","Test":"TestA/some_(part)"}` + "\n" +
			`{"Action":"fail","Package":"` + pkg + `"}` + "\n"
		want := `make x -run '^TestA$/^some_\(part\)$' ` + path + ` | go run ./hack/testsum -v`
		err := run(t.Context(), options{report: report, again: "make x"}, nil, strings.NewReader(in), io.Discard)
		r, _ := outcome.Read(report) // Missing content is detected below.
		if err == nil || len(r.Failures) == 0 || r.Failures[0].Again != want {
			t.Errorf("got %v and %+v, want the command %s", err, r.Failures, want)
		}
	}
}

func TestCommand(t *testing.T) {
	c, err := parseCommand(options{}, []string{"go", "test", "-json", "-coverpkg=./pkg/...", "github.com/x/y", "./a",
		"-seed", "7"})
	if err != nil {
		t.Fatal(err)
	}
	got := c.text(c.alone("./a", "TestA/some (part)"))
	if want := `go test -count=1 -run '^TestA$/^some \(part\)$' ./a -seed 7`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.before, c.after = []string{"go", "test", "-json", "-count=1", "-tags", ""}, []string{"-x", "#17 `a`"}
	if got, want := c.text(c.alone("./a", "TestA/x#01")),
		"go test -tags '' -count=1 -run '^TestA$/^x#01$' ./a -x '#17 `a`'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := c.repeat(&failure{id: test{pkg: goTest}}); got != "go test -count=1 -tags '' github.com/x/y ./a -x '#17 "+
		"`a`'" {
		t.Errorf("got %s", got)
	}
	if _, err := parseCommand(options{}, []string{"go", "vet", "./..."}); err == nil {
		t.Error("a command without events was taken")
	}
}
