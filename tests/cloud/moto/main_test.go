package moto

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inner is moto's address in the process that runs the conformance suite. See run.
var inner = flag.String("inner", "",
	"run the conformance suite over the moto at this address and judge nothing; for this test itself")

// fault is a scenario in which moto differs from EC2, and the reason why that is moto's fault.
type fault struct{ scenario, why string }

// server starts moto until the test ends. A failure to start fails the test: there is no other second opinion.
func server(t *testing.T) *Server {
	t.Helper()
	root, err := Root(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// judge compares the results of scenarios with the known faults. An unknown failure and a known fault that does not
// occur are both errors.
func judge(t *testing.T, failed map[string]string, passed []string, known []fault) {
	t.Helper()
	for _, k := range known {
		switch text, ok := failed[k.scenario]; {
		case ok:
			t.Logf("left out: %s: %s", k.scenario, k.why)
			t.Logf("          %s", strings.TrimSpace(text))
			delete(failed, k.scenario)
		case slices.Contains(passed, k.scenario):
			t.Errorf("%s passes: take it out of the list of what moto is known to do wrong (%q)", k.scenario, k.why)
		default:
			t.Errorf("there is no scenario %s: take it out of the list of what moto is known to do wrong", k.scenario)
		}
	}
	for scenario, text := range failed {
		t.Errorf("%s\n%s", scenario, text)
	}
	t.Logf("%d scenarios pass, %d are left out", len(passed), len(known))
}

// run runs the test of that name in a separate process, because a failed test cannot be reverted. It returns the
// innermost subtests that failed, with their output, and those that passed.
func run(t *testing.T, name, url string) (failed map[string]string, passed []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+name+"$", "-test.v", "-test.timeout=15m", "-inner="+url)
	out, err := cmd.CombinedOutput()
	texts, verdicts := sort(string(out))
	for scenario, verdict := range verdicts {
		if verdict == "" || len(verdicts) < 2 || (err == nil) != (verdicts[name] == "PASS") {
			t.Fatalf("the suite did not run to its end (%s): %v\n%s", scenario, err, out)
		}
	}
	if len(verdicts) == 0 {
		t.Fatalf("the suite did not run: %v\n%s", err, out)
	}
	failed = map[string]string{}
	for scenario, verdict := range verdicts {
		// A test with subtests fails with them, unless it fails by itself.
		inner, broken := false, false
		for other, verdict := range verdicts {
			if strings.HasPrefix(other, scenario+"/") {
				inner, broken = true, broken || verdict != "PASS"
			}
		}
		short := strings.TrimPrefix(scenario, name+"/")
		switch {
		case inner && (broken || verdict == "PASS"):
		case verdict == "PASS":
			passed = append(passed, short)
		default:
			failed[short] = texts[scenario]
		}
	}
	return failed, passed
}

// sort parses the output of `go test -v`: the lines of each test, and the verdicts, which are empty for unfinished
// tests.
func sort(out string) (texts, verdicts map[string]string) {
	texts, verdicts = map[string]string{}, map[string]string{}
	begins := regexp.MustCompile(`^=== (?:RUN|NAME|CONT)\s+(\S+)`)
	ends := regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)
	current := ""
	for line := range strings.Lines(out) {
		if found := begins.FindStringSubmatch(line); found != nil {
			current = found[1]
			verdicts[current] += ""
		} else if found := ends.FindStringSubmatch(line); found != nil {
			verdicts[found[2]], current = found[1], ""
		} else if current != "" {
			texts[current] += line
		}
	}
	return texts, verdicts
}
