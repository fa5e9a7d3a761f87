package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTestsEndBeforeTheirStep reads the commands of the steps: go test, or Ginkgo, must end tests that hang, and print
// what they wait for, before the limit ends the step. A step that runs tests must have their number.
func TestTestsEndBeforeTheirStep(t *testing.T) {
	tests, found := regexp.MustCompile(` test -json | \./tests/e2e/conformance `), 0
	for _, s := range slices.Concat(gate(), long()) {
		if !strings.HasPrefix(s.command, "make ") {
			continue
		}
		list := exec.CommandContext(t.Context(), "bash", "-c", "cd ../.. && "+s.command+" -n")
		list.Env = append(os.Environ(), "TIMEOUT="+s.patience().String())
		commands, err := list.Output()
		if err != nil {
			t.Errorf("%s: %v", s.again(), err)
		}
		for line := range strings.Lines(string(commands)) {
			if !tests.MatchString(line) {
				continue
			}
			found++
			if s.tests == 0 {
				t.Errorf("%s runs tests, and does not say how many usually pass", s.again())
			}
			if limit := timeoutOf(t, line); limit <= 0 || limit > s.patience() {
				t.Errorf("%s has the limit %v, and its tests %v, want at most %v: %s", s.again(), s.limit, limit, s.patience(),
					line)
			}
		}
	}
	if found < 15 {
		t.Errorf("found %d commands that test, want those of the Makefile", found)
	}
}

// TestInnerTestsEndBeforeOuterOnes has the tests of moto, which run others in a process of their own.
func TestInnerTestsEndBeforeOuterOnes(t *testing.T) {
	text, err := os.ReadFile("../../tests/cloud/moto/main_test.go")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := named([]string{"moto"})
	if err != nil {
		t.Fatal(err)
	}
	if inner := timeoutOf(t, string(text)); inner <= 0 || inner >= steps[0].patience() {
		t.Errorf("the inner tests have %v, want less than %v", inner, steps[0].patience())
	}
}

// timeoutOf returns the time-out of a command of go test, or 0.
func timeoutOf(t *testing.T, command string) time.Duration {
	t.Helper()
	match := regexp.MustCompile(`-(?:test\.)?timeout[ =](\w+)`).FindStringSubmatch(command)
	if match == nil {
		return 0
	}
	limit, err := time.ParseDuration(match[1])
	if err != nil {
		t.Error(err)
	}
	return limit
}
