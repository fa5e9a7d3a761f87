package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const (
		start = `{"Action":"start","Package":"m/p"}` + "\n"
		pass  = `{"Action":"run","Package":"m/p","Test":"TestA"}` + "\n" +
			`{"Action":"pass","Package":"m/p","Test":"TestA"}` + "\n"
		skip = `{"Action":"run","Package":"m/p","Test":"TestB/x"}` + "\n" +
			`{"Action":"output","Package":"m/p","Test":"TestB/x","Output":"not root\n"}` + "\n" +
			`{"Action":"skip","Package":"m/p","Test":"TestB/x"}` + "\n"
		fail = `{"Action":"output","Package":"m/p","Test":"TestC","Output":"broken pipe\n"}` + "\n" +
			`{"Action":"fail","Package":"m/p","Test":"TestC"}` + "\n"
		hung = `{"Action":"output","Package":"m/p","Test":"TestD","Output":"panic: timed out\n"}` + "\n"
		sums = `{"Action":"output","Package":"m/p","Test":"TestS","Output":"\u001b[1mSUCCESS!\u001b[0m -- ` +
			`\u001b[32m94 Passed\u001b[0m | 0 Failed | 1 Pending | 8 Skipped\n"}` + "\n" +
			`{"Action":"pass","Package":"m/p","Test":"TestS"}` + "\n"
		ok  = `{"Action":"pass","Package":"m/p","Elapsed":1.5}` + "\n"
		bad = `{"Action":"fail","Package":"m/p","Elapsed":1.5}` + "\n"
	)
	tests := []struct {
		name, allowed, in string
		err, out          string // parts of them; empty for none
	}{
		{"passes", "", start + pass + ok, "", "1 passed, 0 failed, 0 skipped"},
		{"refused skip", "", start + pass + skip + ok, "1 skips are not on the list", "REFUSED  m/p TestB/x\nnot root"},
		{"allowed skip", "p TestB/x no root", start + pass + skip + ok, "", "allowed  m/p TestB/x: no root"},
		{"allowed subtests", "p TestB/* no root", start + pass + skip + ok, "", "1 passed, 0 failed, 1 skipped"},
		{"skip in another package", "q TestB/x no root", start + pass + skip + ok, "1 skips", "REFUSED"},
		{"fails", "", start + pass + fail + bad, "1 tests failed", "broken pipe"},
		{"hangs", "", start + pass + hung + bad, "1 tests failed", "panic: timed out"},
		{"fails outside tests", "", start + pass + bad, "1 packages failed", "FAIL"},
		{"does not build", "",
			`{"Action":"build-output","ImportPath":"m/p [m/p.test]","Output":"undefined: x\n"}` + "\n" + start +
				`{"Action":"fail","Package":"m/p","FailedBuild":"m/p [m/p.test]"}` + "\n",
			"1 packages failed", "undefined: x"},
		{"is cut off", "", start + pass, "1 packages failed", "did not end"},
		{"nothing ran", "", `{"Action":"start","Package":"m/p"}` + "\n" + `{"Action":"skip","Package":"m/p"}` + "\n",
			"no test passed", "0 passed"},
		{"stray output", "", "hello\n" + start + pass + ok, "", "hello"},
		{"ends early", "", start + pass + `{"Action":"run","Package":"m/p","Test":"TestE"}` + "\n" + ok, "1 tests failed",
			"it had not ended when its package did"},
		{"refused specs", "p TestS:7 none", start + sums + ok, "1 skips", "REFUSED  m/p TestS (8 specs)"},
		{"allowed specs", "p TestS:8 no publish", start + sums + ok, "", "95 passed, 0 failed, 8 skipped"},
		{"any specs", "p TestS:* the test checks each", start + sums + ok, "", "95 passed, 0 failed, 8 skipped"},
		{"any specs of another test", "p TestB:* the test checks each", start + sums + ok, "1 skips",
			"REFUSED  m/p TestS (8 specs)"},
		{"specs of two suites", "p TestS:8 no publish", start + strings.Replace(sums, `{"Action":"pass"`, `{"Action":"output","Package":"m/p","Test":"TestS","Output":"-- 1 Passed | 0 Failed | 0 Pending | 8 Skipped\n"}`+"\n"+`{"Action":"pass"`, 1) + ok,
			"1 skips", "REFUSED  m/p TestS (16 specs)"},
		{"bad list", "p TestS", start + pass + ok, "want a package, a test and a reason", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list := filepath.Join(t.TempDir(), "skips")
			if err := os.WriteFile(list, []byte("# Reasons.\n"+tt.allowed+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := run(t.Context(), options{skips: list}, nil, strings.NewReader(tt.in), &out)
			switch {
			case tt.err == "" && err != nil:
				t.Errorf("got error %v, want none", err)
			case tt.err != "" && err == nil:
				t.Errorf("got no error, want one with %q", tt.err)
			case err != nil && !strings.Contains(err.Error(), tt.err):
				t.Errorf("got error %v, want one with %q", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.out) {
				t.Errorf("got output %q, want %q in it", out.String(), tt.out)
			}
		})
	}
}

func TestRunRepeatsFailures(t *testing.T) {
	in := `{"Action":"output","Package":"m/p","Test":"TestC","Output":"broken pipe\n"}` + "\n" +
		`{"Action":"fail","Package":"m/p","Test":"TestC"}` + "\n" +
		`{"Action":"output","Package":"m/p","Output":"FAIL\n"}` + "\n" +
		`{"Action":"fail","Package":"m/p"}` + "\n"
	var out bytes.Buffer
	if err := run(t.Context(), options{verbose: true}, nil, strings.NewReader(in), &out); err == nil {
		t.Error("got no error for a test that failed")
	}
	want := "DEFECT m/p TestC: broken pipe\nbroken pipe\n0 passed, 1 failed, 0 skipped\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got output %q, want %q at its end", out.String(), want)
	}
}

func TestRunVerbose(t *testing.T) {
	in := `{"Action":"run","Package":"m/p","Test":"TestA"}` + "\n" +
		`{"Action":"output","Package":"m/p","Test":"TestA","Output":"=== RUN   TestA\n"}` + "\n" +
		`{"Action":"output","Package":"m/p","Test":"TestA","Output":"a table\n"}` + "\n" +
		`{"Action":"pass","Package":"m/p","Test":"TestA"}` + "\n" +
		`{"Action":"pass","Package":"m/p"}` + "\n"
	var out bytes.Buffer
	if err := run(t.Context(), options{verbose: true}, nil, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "a table\nok ") {
		t.Errorf("got output %q, want the table first and no === lines", out.String())
	}
}
