package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lines is a range of lines of a file: the first and the last.
type lines struct{ first, last int }

// changed returns the tests in which a line was added or changed since the commit, including uncommitted changes, and
// the tests that use a changed part of their package's tests.
func changed(ctx context.Context, since string) ([]batch, error) {
	// A user's configuration of colours, prefixes and renames would hide tests.
	diff, err := git(ctx, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-renames",
		"--src-prefix=a/", "--dst-prefix=b/", "--diff-filter=AM", since, "--", "*_test.go")
	if err != nil {
		return nil, fmt.Errorf("cannot list what has changed since %s: %w", since, err)
	}
	added, err := git(ctx, "ls-files", "--others", "--exclude-standard", "--", "*_test.go")
	if err != nil {
		return nil, fmt.Errorf("cannot list the files that are not committed: %w", err)
	}
	parts := hunks(diff)
	for name := range strings.Lines(added) {
		parts[strings.TrimSpace(name)] = []lines{{1, math.MaxInt}}
	}
	folders := map[string]bool{}
	for file := range parts {
		folders[path.Dir(file)] = true
	}
	var batches []batch
	for folder := range folders {
		names, err := testsIn(folder, parts)
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			batches = append(batches, batch{"./" + folder, "^(" + strings.Join(names, "|") + ")$"})
		}
	}
	slices.SortFunc(batches, func(a, b batch) int { return strings.Compare(a.pkg, b.pkg) })
	return batches, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.quotepath=off"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

// hunks returns the changed lines of each file in a diff without context.
func hunks(diff string) map[string][]lines {
	parts, file := map[string][]lines{}, ""
	header := regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			file = strings.TrimSpace(name)
		}
		m := header.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		first, _ := strconv.Atoi(m[1]) // The expression matches digits only.
		number := 1
		if m[2] != "" {
			number, _ = strconv.Atoi(m[2])
		}
		parts[file] = append(parts[file], lines{first, first + max(number, 1) - 1})
	}
	return parts
}
