package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// planted is a package whose tests fail, skip and pass.
const planted = `package p

import (
	"os"
	"testing"
)

func TestPasses(t *testing.T) { println("no end of line: --- FAIL: TestPasses ("); os.Stdout.WriteString("x") }

func TestSkips(t *testing.T) { t.Skip("not here") }

func TestMaySkip(t *testing.T) { t.Skip("not here") }

func TestSkipsAPart(t *testing.T) {
	t.Run("part", func(t *testing.T) { t.Skip("not here") })
}

func TestFailsOnce(t *testing.T) {
	if _, err := os.Stat("ran"); err != nil {
		_ = os.WriteFile("ran", nil, 0o600)
		t.Error("the first time")
	}
}

func TestEndsAll(t *testing.T) { os.Exit(0) }
`

// TestRepeat runs tests of every kind three times.
func TestRepeat(t *testing.T) {
	allowed := []outcome.Allowance{{Pkg: "p", Test: "TestMaySkip"}}
	for pattern, want := range map[string][]string{
		"^Test[^E]": {"1 of 3 runs failed, with -shuffle=1", "TestFailsOnce passed 2 of 3 times, failed 1",
			"TestSkips was skipped 3 times", "TestSkipsAPart/part was skipped 3 times"},
		"^TestE": {"3 of 3 runs failed, with -shuffle=1, 2, 3", "TestEndsAll passed 0 of 3 times, failed 3"},
	} {
		t.Run(pattern, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range map[string]string{"go.mod": "module example.org/m\n\ngo 1.24\n", "p/p_test.go": planted} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			results, problems := repeat(t.Context(), batch{"./p", pattern}, 3, "logs")
			if problems = append(problems, results.judge("./p", 3, allowed)...); !slices.Equal(problems, want) {
				t.Errorf("got the problems %q, want %q", problems, want)
			}
			if _, err := os.Stat("logs/p-1.log"); err != nil {
				t.Errorf("the output of the run that failed is not kept: %v", err)
			}
		})
	}
}

// TestTheTable prints the results of a few tests, without their parts.
func TestTheTable(t *testing.T) {
	results := tally{}
	results.add("\x16--- PASS: TestA (0.00s)\n--- SKIP: TestA (0.00s)\n" +
		"\x16--- FAIL: TestB/x (0.00s)\n\x16--- FAIL: TestB (0.00s)\n")
	var out bytes.Buffer
	results.print(&out, "./p")
	want := "    1 passed     0 failed     0 skipped  ./p TestA\n" +
		"    0 passed     1 failed     0 skipped  ./p TestB\n" +
		"    1 passed     1 failed     0 skipped  ./p, 2 tests\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

// TestNothingToRun asks for no run at all.
func TestNothingToRun(t *testing.T) {
	t.Chdir("../..")
	if err := flaky(t.Context(), "HEAD", "./hack/flaky", ".", 0, true); err == nil {
		t.Error("nothing was run, and that was no failure")
	}
}
