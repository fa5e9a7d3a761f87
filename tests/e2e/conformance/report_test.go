package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// written is a report in ginkgo's format, with fields that are read and some that are not.
const written = `[{"SuitePath": "/e2e", "SuiteSucceeded": false, "RunTime": 61000000000, "SpecReports": [
 {"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
 {"ContainerHierarchyTexts": ["External Storage [Driver: d]",
   "[Testpattern: Dynamic PV (default fs)(allowExpansion)] volume-expand"],
  "LeafNodeType": "It", "LeafNodeText": "should grow", "State": "passed", "RunTime": 2000000000},
 {"ContainerHierarchyTexts": ["External Storage [Driver: d]", "[Testpattern: Dynamic PV (ext4)] [Slow] volumes"],
  "LeafNodeType": "It", "LeafNodeText": "should store data", "State": "timedout",
   "Failure": {"Message": "took too long\nstack"}},
 {"ContainerHierarchyTexts": ["External Storage [Driver: d]",
   "[Testpattern:  (delete policy)] snapshottable", "controller"],
  "LeafNodeType": "It", "LeafNodeText": "should snapshot", "State": "skipped",
   "Failure": {"Message": "no snapshots -- skipping"}},
 {"ContainerHierarchyTexts": ["External Storage [Driver: d]", "[Testpattern: Inline-volume (default fs)] subPath"],
  "LeafNodeType": "It", "LeafNodeText": "was not chosen", "State": "skipped"},
 {"LeafNodeType": "ReportAfterSuite", "LeafNodeText": "reports", "State": "panicked",
   "Failure": {"Message": "disk full"}}
]}]`

func read(t *testing.T, text string) (*report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), reportFile)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return readReport(path)
}

func TestReadReport(t *testing.T) {
	r, err := read(t, written)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		id    string
		state state
	}{
		{"[Dynamic PV (default fs)(allowExpansion)] volume-expand: should grow", passed},
		{"[Dynamic PV (ext4)] volumes: should store data", failed},
		{"[ (delete policy)] snapshottable controller: should snapshot", skipped},
	}
	if len(r.specs) != len(want) {
		t.Fatalf("read %+v, want %d specs: what was not chosen is none", r.specs, len(want))
	}
	for i, w := range want {
		if got := r.specs[i]; got.id() != w.id || got.state != w.state {
			t.Errorf("spec %d is %q, %s; want %q, %s", i, got.id(), got.state, w.id, w.state)
		}
	}
	if r.took != 61*time.Second || r.count(passed) != 1 || r.count(skipped) != 1 {
		t.Errorf("the report took %v and counts %d passed, %d skipped", r.took, r.count(passed), r.count(skipped))
	}
	if len(r.broken) != 1 || !strings.Contains(r.broken[0], "disk full") {
		t.Errorf("what failed outside specs is %q", r.broken)
	}
}

func TestReadReportRefuses(t *testing.T) {
	if _, err := read(t, `[{"SpecReports": [`); err == nil {
		t.Error("a report that was cut short is read")
	}
	if _, err := readReport(filepath.Join(t.TempDir(), reportFile)); err == nil {
		t.Error("a report that is not there is read")
	}
}

// Each run has one spec that passed, unless the case says otherwise.
func TestJudge(t *testing.T) {
	list := exceptionsOf(t, `
skipped:
- definitions: [directory]
  message: Driver "[a-z.]+" has no \w+ - skipping
  reason: it is so
`)
	good := spec{pattern: "p", suite: "s", name: "good", state: passed}
	skip := spec{pattern: "p", suite: "s", name: "skip", state: skipped,
		message: "Driver \"local.dev\" has no block - skipping\nstack"}
	for what, test := range map[string]struct {
		definition string
		report     report
		want       string // part of the only problem; empty for none
	}{
		"all is well": {"directory", report{specs: []spec{good, skip}}, ""},
		"skip elsewhere": {"image-xfs", report{specs: []spec{good, skip}},
			"must run and was skipped: [p] s: skip: Driver"},
		"failed": {"directory", report{specs: []spec{good, {state: failed, name: "bad", message: "why"}}},
			"bad: why"},
		"nothing ran": {"directory", report{}, "no spec passed"},
		"all skipped": {"directory", report{specs: []spec{skip}}, "no spec passed"},
		"broken outside specs": {"directory", report{specs: []spec{good}, broken: []string{"BeforeSuite: no cluster"}},
			"no cluster"},
		"ginkgo only": {"directory", report{specs: []spec{good}, failed: errors.New("exit status 2")},
			"exit status 2"},
	} {
		v := judge(definition{name: test.definition}, 1, &test.report, list)
		if test.want == "" {
			if len(v.problems) != 0 {
				t.Errorf("%s: %q, want no problem", what, v.problems)
			}
			continue
		}
		if len(v.problems) != 1 || !strings.Contains(v.problems[0], test.want) {
			t.Errorf("%s: %q, want one problem with %q", what, v.problems, test.want)
		}
	}
}

func TestFlaky(t *testing.T) {
	run := func(definition string, states ...state) verdict {
		v := verdict{definition: definition, report: &report{}}
		for i, s := range states {
			v.report.specs = append(v.report.specs, spec{name: string(rune('a' + i)), state: s})
		}
		return v
	}
	got := flaky([]verdict{run("one", passed, passed, failed), run("two", failed, passed, passed),
		run("one", passed, failed, failed)})
	if len(got) != 1 || got[0] != "flaky: one: [] : b" {
		t.Errorf("flaky are %q, want b of one only", got)
	}
}

func TestVerdictIsWritten(t *testing.T) {
	r, err := read(t, written)
	if err != nil {
		t.Fatal(err)
	}
	v := judge(definition{name: "directory"}, 2, r, exceptionsOf(t,
		"skipped: [{message: no snapshots -- skipping, reason: folders}]"))
	var out strings.Builder
	if err := v.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"directory, run 2: 1 passed, 1 failed, 1 skipped of 3 in 1m1s", "0       1       0        Dynamic PV (ext4)",
		"1 skipped: no snapshots -- skipping\n      folders\n          1 of  (delete policy)",
		"failed: [Dynamic PV (ext4)] volumes: should store data: took too long",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}
