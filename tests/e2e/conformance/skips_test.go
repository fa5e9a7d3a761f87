package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func exceptionsOf(t *testing.T, text string) *exceptions {
	t.Helper()
	list, err := parseExceptions(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func parseExceptions(t *testing.T, text string) (*exceptions, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "skips.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return readExceptions(path, definitions())
}

func TestTheListIsRead(t *testing.T) {
	if _, err := readExceptions("skips.yaml", definitions()); err != nil {
		t.Error(err)
	}
}

func TestExceptionsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"skipped: [{message: m}]":                                  "reason",
		"skipped: [{reason: r}]":                                   "message",
		"skipped: [{message: '(', reason: r}]":                     "missing closing",
		"skipped: [{message: m, suite: '(', reason: r}]":           "missing closing",
		"skipped: [{message: m, reason: r, definitions: [other]}]": "other",
		"skipped: [{message: m, reason: r, definition: x}]":        "definition",
		"excluded: [{spec: s}]":                                    "reason",
		"excluded: [{spec: '(', reason: r}]":                       "missing closing",
	} {
		if _, err := parseExceptions(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that mentions %q", text, err, want)
		}
	}
}

func TestAllowanceCoversTheWholeMessage(t *testing.T) {
	list := exceptionsOf(t, "skipped: [{message: no block, suite: volumes, reason: r, definitions: [directory]}]")
	for _, test := range []struct {
		definition, suite, message string
		want                       bool
	}{
		{"directory", "volumes", "no block", true},
		{"directory", "volumes", "no block\nat line 1", true},
		{"directory", "volumes", "no block device", false},
		{"directory", "volumes", "there is no block", false},
		{"directory", "volumes-x", "no block", false},
		{"image-xfs", "volumes", "no block", false},
	} {
		got := list.allowed(test.definition, spec{suite: test.suite, message: test.message}) != nil
		if got != test.want {
			t.Errorf("%+v: allowed is %t", test, got)
		}
	}
}

func TestIdleAllowances(t *testing.T) {
	list := exceptionsOf(t, `
skipped:
- {message: used, reason: r, definitions: [directory, image-xfs]}
- {message: unused, reason: r}
- {message: other, reason: r, definitions: [image-ext4]}
`)
	list.allowed("directory", spec{message: "used"})
	idle := list.idle([]definition{{name: "directory"}, {name: "image-xfs"}})
	if len(idle) != 2 || !strings.Contains(idle[0], "image-xfs") || !strings.Contains(idle[1], "unused") {
		t.Errorf("idle are %q; want the first for image-xfs and the second: image-ext4 did not run", idle)
	}
}
