package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContainmentTable checks that each test in docs/design/015-containment.md exists, and that each line names a test
// or an open gap.
func TestContainmentTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/design/015-containment.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)` in `([\\w/]+)`")
	rows := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") ||
			strings.TrimSpace(cells[0]) == "what he tries" || strings.TrimSpace(cells[0]) == "what it tries" {
			continue
		}
		rows++
		if len(cells) != 3 {
			t.Errorf("the line has %d cells, want 3: %s", len(cells), line)
			continue
		}
		tests := named.FindAllStringSubmatch(cells[2], -1)
		if len(tests) != strings.Count(cells[2], "`Test") {
			t.Errorf("a test is not named as `Test…` in `folder`: %s", cells[2])
		}
		if len(tests) == 0 && (strings.TrimSpace(cells[2]) != "none" || !strings.Contains(cells[1], "**gap**")) {
			t.Errorf("the line names no test and is not called a gap: %s", line)
		}
		for _, test := range tests {
			if !hasTest(t, test[2], test[1]) {
				t.Errorf("%s has no %s", test[2], test[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("the tables have %d lines: are they still read?", rows)
	}
}

// hasTest reports whether a folder of the tree has a test.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
