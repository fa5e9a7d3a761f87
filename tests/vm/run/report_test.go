package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// actions returns the last action of each test, and of the package, under the empty name.
func actions(t *testing.T, out *bytes.Buffer) map[string]string {
	t.Helper()
	last := map[string]string{}
	decoder := json.NewDecoder(out)
	for decoder.More() {
		var e struct{ Action, Test string }
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Action != "output" {
			last[e.Test] = e.Action
		}
	}
	return last
}

func TestReport(t *testing.T) {
	const passes = "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n"
	job := wire.Job{Programs: []wire.Program{{Name: "p"}}}
	for _, test := range []struct {
		name   string
		frames []wire.Frame
		want   string // of the package
		err    string
	}{
		{"passes", []wire.Frame{{Kind: wire.Output, Text: passes}, {Kind: wire.End}}, "pass", ""},
		{"fails", []wire.Frame{{Kind: wire.Output, Text: "=== RUN   TestA\n--- FAIL: TestA (0.00s)\nFAIL\n"},
			{Kind: wire.End, Code: 1}}, "fail", "1 of 1"},
		// A test binary that ends badly after its tests have passed must not pass.
		{"exits badly", []wire.Frame{{Kind: wire.Output, Text: passes}, {Kind: wire.End, Code: 137}}, "fail", "1 of 1"},
		{"runs no test", []wire.Frame{{Kind: wire.Output, Text: "testing: warning: no tests to run\nPASS\n"},
			{Kind: wire.End}}, "fail", "1 of 1"},
		{"says nothing", []wire.Frame{{Kind: wire.End}}, "fail", "1 of 1"},
		{"times out", []wire.Frame{{Kind: wire.Output, Text: marker + "=== RUN   TestA\npanic: test timed out"},
			{Kind: wire.End, Code: 2}}, "fail", "1 of 1"},
		{"is cut off", []wire.Frame{{Kind: wire.Output, Text: marker + "=== RUN   TestA\nhalf a li"}}, "fail", "1 of 1"},
		{"is cut off at the end", []wire.Frame{{Kind: wire.Output, Text: passes}}, "fail", "1 of 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			r := newReport(&out)
			for _, f := range append([]wire.Frame{{Kind: wire.Begin, Program: "p"}}, test.frames...) {
				if err := r.take(f); err != nil && !errors.Is(err, errSpoiled) {
					t.Fatal(err)
				}
			}
			if err := r.cutOff(); err != nil {
				t.Fatal(err)
			}
			if got := actions(t, &out)[""]; got != test.want {
				t.Errorf("the package's last event is %q, want %q", got, test.want)
			}
			err := r.verdict(job)
			if (test.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("the verdict is %v, want %q", err, test.err)
			}
		})
	}
}

func TestKilledProgramSpoilsItsGuest(t *testing.T) {
	for code, want := range map[int]error{0: nil, 1: nil, 2: nil, 128 + int(unix.SIGKILL): errSpoiled} {
		r := newReport(&bytes.Buffer{})
		if err := r.take(wire.Frame{Kind: wire.Begin, Program: "p"}); err != nil {
			t.Fatal(err)
		}
		if err := r.take(wire.Frame{Kind: wire.End, Code: code}); !errors.Is(err, want) {
			t.Errorf("the end with code %d returns %v, want %v", code, err, want)
		}
	}
}

func TestVerdictOfMissing(t *testing.T) {
	if err := newReport(&bytes.Buffer{}).verdict(wire.Job{Programs: make([]wire.Program, 2)}); err == nil {
		t.Error("a job of which nothing ran is well")
	}
}
