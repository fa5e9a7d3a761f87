package outcome

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestFirstError(t *testing.T) {
	for output, want := range map[string]string{
		"=== RUN   TestA\n    a_test.go:12: got 1, want 2\n    a_test.go:13: later\n": "a_test.go:12: got 1, want 2",
		"log line\npanic: boom\n\tfile.go:1 +0x1\n":                                   "panic: boom",
		"==================\nWARNING: DATA RACE\nRead at 0x00\n":                      "WARNING: DATA RACE",
		"    a_test.go:9: schedule 3\n    a_test.go:11: VIOLATION: lost\n":            "a_test.go:11: VIOLATION: lost",
		"    a_test.go:9: VIOLATIONS 0\n    a_test.go:11: lost\n":                     "a_test.go:9: VIOLATIONS 0",
		"    a_test.go:9: 3 done\npanic: test timed out after 2s\n":                   "panic: test timed out after 2s",
		"    a_test.go:10: 3 done\n    a_test.go:11: no\n":                            "a_test.go:11: no",
		"    a_test.go:10: 3 done\n    a_test.go:10: 4 no\n":                          "a_test.go:10: 4 no",
		"pkg/a.go:3:2: undefined: x\n":                                                "pkg/a.go:3:2: undefined: x",
		"=== RUN   TestB\n\nexit status 3\n":                                          "exit status 3",
		"":                                                                            "",
	} {
		if got := FirstError(output, func(_ string, line int) bool { return line == 10 }); got != want {
			t.Errorf("the first error of %q is %q, want %q", output, got, want)
		}
	}
}

func TestStepError(t *testing.T) {
	for log, want := range map[string]string{
		"go run ./hack/x\nx: cannot find y\nexit status 1\nmake: *** [Makefile:3: z] Error 1\n": "x: cannot find y",
		"E: Unable to fetch\ntry: hack/deps run failed, try 1 of 5\n":                           "E: Unable to fetch",
		"go build\na.go:1:2: undefined: x\na.go:2:2: undefined: y\n" +
			"make: *** [Makefile:3] Error 1\n": "a.go:1:2: undefined: x",
		"golangci-lint\na.go:1: : # a/b [a/b.test]\n" +
			"b.go:20:29: undefined: y (typecheck)\n": "b.go:20:29: undefined: y (typecheck)",
		"": "",
	} {
		if got := StepError(log); got != want {
			t.Errorf("the error of %q is %q, want %q", log, got, want)
		}
	}
}

// TestMachine has the directory in which t.TempDir makes others on a filesystem that may be full.
func TestMachine(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	got := Machine()
	for _, want := range []string{"loadavg ", "MiB free in /var/tmp;", "MiB free in " + dir + ";", " loop devices in"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

func TestTail(t *testing.T) {
	if got := Tail("a\nb\nc\n", 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
}

func TestReportIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is none", err)
	}
	want := Report{Passed: 3, Failed: 1,
		Failures: []Failure{{Package: "m/p", Test: "TestA/x", Class: Flaky, Error: "a_test.go:1: no"}}}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}
