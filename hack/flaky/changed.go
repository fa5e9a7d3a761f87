package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lines are the first and the last line of a part of a file.
type lines struct{ first, last int }

// changed finds the tests in which a line was added or changed since the commit, also what is not committed yet.
// A change outside of tests, in a helper say, concerns all tests of its file.
func changed(ctx context.Context, since string) ([]batch, error) {
	diff, err := exec.CommandContext(ctx, "git", "diff", "--unified=0", "--diff-filter=AM", since, "--", "*_test.go").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list what has changed since %s: %w", since, err)
	}
	tests := map[string][]string{}
	for file, parts := range hunks(string(diff)) {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a changed test: %w", err)
		}
		names, err := testsAt(file, source, parts)
		if err != nil {
			return nil, err
		}
		pkg := "./" + path.Dir(file)
		tests[pkg] = append(tests[pkg], names...)
	}
	var batches []batch
	for pkg, names := range tests {
		if slices.Sort(names); len(names) > 0 {
			batches = append(batches, batch{pkg, "^(" + strings.Join(slices.Compact(names), "|") + ")$"})
		}
	}
	slices.SortFunc(batches, func(a, b batch) int { return strings.Compare(a.pkg, b.pkg) })
	return batches, nil
}

// hunks reads the changed lines of each file from a diff without context.
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

// testsAt returns the tests at these lines of a file.
func testsAt(file string, source []byte, parts []lines) (names []string, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read a changed test: %w", err)
	}
	where := map[string]lines{}
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
			where[f.Name.Name] = lines{set.Position(f.Pos()).Line, set.Position(f.End()).Line}
		}
	}
	for _, part := range parts {
		inside := false
		for name, at := range where {
			if part.first <= at.last && at.first <= part.last {
				names, inside = append(names, name), true
			}
		}
		if inside {
			continue
		}
		for name := range where {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
