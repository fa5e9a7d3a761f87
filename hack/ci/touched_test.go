package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTouchedSeesAllFiles has a file that git does not track yet, and one that moved out of a folder.
func TestTouchedSeesAllFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	script := `git init -q; go mod init example.org/m; mkdir -p tests/vm docs; echo a >"tests/vm/a b.txt"
git add .; git -c user.name=a -c user.email=a@example.org commit -qm a
git mv tests/vm/* docs/; mkdir -p tests/ebs; echo package ebs >tests/ebs/b.go`
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	if err := touched(t.Context(), &out, []string{"HEAD"}); err != nil || out.String() != ".ci/run long-vm long-storms\n" {
		t.Errorf("got %v and %s", err, &out)
	}
}

// TestEachFuzzTargetBelongsToItsStep looks for folders that the step runs but .ci/run touched does not know.
func TestEachFuzzTargetBelongsToItsStep(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "bash", "-c",
		`cd ../.. && grep -rlE --include='*_test.go' '^func Fuzz' pkg cmd tests`).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Fields(string(out)) {
		if !slices.Contains(stepsFor([]string{file}, nil), "long-fuzz") {
			t.Errorf("%s has a fuzz target, and does not touch fuzz", file)
		}
	}
}

// here returns the graph of this module.
func here(t *testing.T) graph {
	t.Helper()
	t.Chdir("../..")
	of, err := imports(t.Context())
	if err != nil || len(of) < 100 {
		t.Fatalf("got %v and %d packages", err, len(of))
	}
	return of
}

func TestTouched(t *testing.T) {
	of := here(t)
	if got := stepsFor([]string{"go.mod"}, of); len(got) != len(long()) {
		t.Errorf("go.mod touches %q only", got)
	}
	for file, want := range map[string]string{
		"docs/architecture.md":           "",
		"pkg/cloudy/x.go":                "race",
		"pkg/cloud/wait/new.go":          "vm e2e conformance failover race storms adversary silence moto bench",
		"pkg/spare/x.go":                 "vm e2e conformance race adversary silence powerloss bench",
		"tests/stall/x.go":               "vm e2e conformance adversary silence bench",
		"tests/cloud/wire/x.go":          "vm e2e conformance failover storms adversary silence moto bench",
		"tests/vm/run/main.go":           "vm",
		"tests/vm/suites/nfs/testdata/x": "vm",
		"deploy/charts/stowage/x.yaml":   "e2e conformance",
	} {
		steps := strings.Join(stepsFor([]string{"README.md", file}, of), " ")
		if got := strings.ReplaceAll(steps, "long-", ""); got != want {
			t.Errorf("%s touches %q, want %q", file, got, want)
		}
	}
}

// TestNoFolderIsForgotten looks for packages that the long form only links in the step of the race detector, which runs
// all tests. Packages that only the gate runs are named here.
func TestNoFolderIsForgotten(t *testing.T) {
	of := here(t)
	own := []string{
		"pkg/cloud", // has a text only
		"tests/canary", "tests/chaos", "tests/controllers", "tests/crash", "tests/demo", "tests/hostile",
		"tests/observability", "tests/pools",
	}
	for home := range of {
		if top, _, _ := strings.Cut(home, "/"); top != "cmd" && top != "pkg" && top != "tests" {
			continue
		}
		steps := slices.DeleteFunc(stepsFor([]string{home + "/x.go"}, of), func(s string) bool { return s == "long-race" })
		if alone := len(steps) == 0; alone != slices.Contains(own, home) {
			t.Errorf("%s belongs to %q: name it in a step of hack/ci/steps.go, or here as the gate's own", home, steps)
		}
	}
}

// TestEachSuiteOfTheGuestBelongsToItsStep reads the list of the guest's suites.
func TestEachSuiteOfTheGuestBelongsToItsStep(t *testing.T) {
	of := here(t)
	text, err := os.ReadFile("tests/vm/run/suites.go")
	if err != nil {
		t.Fatal(err)
	}
	suites := regexp.MustCompile(`pkg: "\./([^"]+)"`).FindAllStringSubmatch(string(text), -1)
	if len(suites) < 10 {
		t.Errorf("got %q only", suites)
	}
	for _, suite := range suites {
		if !slices.Contains(stepsFor([]string{suite[1] + "/x_test.go"}, of), "long-vm") {
			t.Errorf("%s runs in the guest, and does not touch vm", suite[1])
		}
	}
}
