package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// TestStepsAreNotSteered runs a step and a target of make with an environment that would change both.
func TestStepsAreNotSteered(t *testing.T) {
	for name, value := range map[string]string{"FLOOR": "0", "TESTFLAGS": "-run=X", "MAKEFLAGS": "-i", "GOFLAGS": "-n"} {
		t.Setenv(name, value)
	}
	r, out := newRunner(t)
	makefile := r.logs + "/Makefile"
	if err := os.WriteFile(makefile, []byte("FLOOR ?= 85\nfails:\n\tfalse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.one(t.Context(), []step{
		{name: "unset", command: `test -z "${FLOOR-}${TESTFLAGS-}${MAKEFLAGS-}${GOFLAGS-}"`, limit: 2 * time.Minute},
		{name: "ignores", command: "make -f " + makefile + " fails", limit: 2 * time.Minute},
	})
	if v := r.verdict[0]; len(v.failures) > 0 {
		t.Errorf("the step has the variables: %+v", v.failures)
	}
	if v := r.verdict[1]; len(v.failures) == 0 {
		t.Error("make ignored a command that failed")
	}
	_ = r.finish() // One step failed, as it should.
	_, dropped, _ := strings.Cut(out.String(), "not used by the steps: ")
	for _, name := range []string{"FLOOR", "GOFLAGS", "MAKEFLAGS", "TESTFLAGS"} {
		if !slices.Contains(strings.FieldsFunc(dropped, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), name) {
			t.Errorf("the screen does not name %s:\n%s", name, out)
		}
	}
}

// TestEveryVariableOfTheMakefileIsDropped compares the list with the variables that the Makefile takes.
func TestEveryVariableOfTheMakefileIsDropped(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	taken := regexp.MustCompile(`(?m)^(?:[a-z0-9-]+: )?([A-Z0-9_]+) \?=`).FindAllStringSubmatch(string(text), -1)
	if len(taken) < 20 {
		t.Fatalf("found %d variables, want those of the Makefile", len(taken))
	}
	for _, match := range taken {
		if !slices.Contains(steering(), match[1]) {
			t.Errorf("the environment's %s reaches the steps", match[1])
		}
	}
}

// TestFreshRunsEveryTest checks that a fresh gate takes no result from go's cache.
func TestFreshRunsEveryTest(t *testing.T) {
	r, _ := newRunner(t)
	r.fresh = true
	r.one(t.Context(), []step{{name: "fresh", command: `test "$TESTFLAGS" = -count=1`, limit: 2 * time.Minute}})
	if !r.passed() {
		t.Errorf("got %+v", r.verdict)
	}
}
