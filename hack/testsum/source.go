package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// sources reads the tests' code, to distinguish an error from log output: their lines look the same, and no event of go
// test tells them apart.
type sources struct {
	dir  string            // the working directory of go
	dirs map[string]string // of the packages; empty if not found
}

// logged returns a function that reports whether a line of a package's test files prints to a log. A line in another
// package's file, or in a helper that is reported at the test's line, may print an error.
func (s sources) logged(pkg string) func(file string, line int) bool {
	return func(file string, line int) bool {
		text, err := os.ReadFile(filepath.Join(s.folder(pkg), filepath.Base(file)))
		lines := strings.Split(string(text), "\n")
		if err != nil || line < 1 || line > len(lines) {
			return false
		}
		logs, fails := regexp.MustCompile(`(?i)\blogf?\(`), regexp.MustCompile(`\.(Error|Fatal)f?\(`)
		return logs.MatchString(lines[line-1]) && !fails.MatchString(lines[line-1])
	}
}

func (s sources) folder(pkg string) string {
	if dir, known := s.dirs[pkg]; known {
		return dir
	}
	list := exec.CommandContext(context.Background(), "go", "list", "-find", "-f", "{{.Dir}}", pkg)
	list.Dir = s.dir
	out, err := list.Output()
	if err != nil {
		out = nil // The output of an unknown package is used unchanged.
	}
	s.dirs[pkg] = strings.TrimSpace(string(out))
	return s.dirs[pkg]
}
