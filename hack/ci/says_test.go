package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSaysCountsWhatIsPrinted checks the pattern of each step against a log with the lines that its program prints.
func TestSaysCountsWhatIsPrinted(t *testing.T) {
	specs := printed(t, "tests/e2e/conformance/summary.go", `%s, run %d: %d passed, %d failed, %d skipped of %d in %v`,
		"image-xfs", 1, 31, 0, 2, 33, time.Minute)
	reports := printed(t, "tests/e2e/conformance/run.go", `\nReports are in %s.\n\n`, "/var/tmp/reports")
	scenarios := printed(t, "tests/cloud/moto/main_test.go", `%d scenarios pass, %d are left out`, 120, 3)
	pool := func(name string, inFlight int) string {
		return printed(t, "tests/bench/load.go", `pool %s, %d in flight: %d volumes\n`, name, inFlight, 40)
	}
	fuzz := exec.CommandContext(t.Context(), "../fuzz", "1x")
	fuzz.Env = append(os.Environ(), "GO=true") // Every target passes at once.
	targets, err := fuzz.Output()
	if err != nil {
		t.Fatal(err)
	}
	logs := map[string]struct {
		text string
		want int
	}{
		// The line comes above the table of each run, and again at the end.
		"conformance": {"\n" + specs + "\n\n  passed  failed\n" + reports + specs + "\n", 31},
		"moto":        {"=== RUN   TestConformance\n    main_test.go:54: " + scenarios + "\n", 120},
		"bench":       {pool("directory", 1) + pool("directory", 8) + pool("image", 1) + "Pool image, 1 in flight\n", 3},
		"fuzz":        {string(targets), strings.Count(string(targets), "== Fuzz")},
	}
	for _, s := range slices.Concat(gate(), long()) {
		if s.says == "" {
			continue
		}
		log, known := logs[s.name]
		if got := said(log.text, s.says); !known || got != log.want || got == 0 {
			t.Errorf("%s counts %d with %s, want %d in its log:\n%s", s.again(), got, s.says, log.want, log.text)
		}
	}
}

// printed returns a text in a format that a source file has, so that another format there fails the test.
func printed(t *testing.T, file, format string, args ...any) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	quoted := `"` + format + `"`
	if !strings.Contains(string(text), quoted) {
		t.Fatalf("%s no longer prints %s: a pattern in hack/ci/steps.go counts it", file, quoted)
	}
	unquoted, err := strconv.Unquote(quoted)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(unquoted, args...)
}
