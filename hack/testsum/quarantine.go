package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// debt is the maximum number of excluded tests.
const debt = 5

// readQuarantine reads the list of excluded tests, which are top-level tests.
func readQuarantine(path string) ([]outcome.Allowance, error) {
	left, err := outcome.ReadAllowances(path)
	if err != nil {
		return nil, err
	}
	if len(left) > debt {
		return nil, fmt.Errorf("%s: %d tests are left out, want at most %d: mend some", path, len(left), debt)
	}
	for _, a := range left {
		if a.Specs > 0 || !regexp.MustCompile(`^(Test|Fuzz|Example)\w*$`).MatchString(a.Test) {
			return nil, fmt.Errorf("%s: %s: want the name of a top-level test", path, a.Test)
		}
	}
	return left, nil
}

// mayBeEmpty reports whether the command may select no test of a package.
func (c command) mayBeEmpty(pkg string) bool {
	picks := func(arg string) bool {
		return regexp.MustCompile(`^--?(test\.)?(run|skip|list|bench)(=|$)`).MatchString(arg)
	}
	left := func(a outcome.Allowance) bool { return a.Holds(pkg) }
	return slices.ContainsFunc(c.before, picks) || slices.ContainsFunc(c.after, picks) ||
		slices.ContainsFunc(c.quarantine, left)
}

// runWithout excludes the tests of the quarantine. go test's -skip cannot select packages: tests of the same names in
// other packages are run afterwards.
func (c command) runWithout(ctx context.Context, s *summary) error {
	others, err := c.namesakes(ctx)
	if err != nil {
		return err
	}
	s.emptied = func(pkg string) bool {
		return c.mayBeEmpty(pkg) || slices.ContainsFunc(slices.Collect(maps.Values(others)),
			func(in []string) bool { return slices.Contains(in, pkg) })
	}
	var names []string
	for _, a := range c.quarantine {
		names = append(names, a.Test)
	}
	skip := "^(" + strings.Join(names, "|") + ")$"
	if err := c.start(ctx, slices.Concat(c.before, []string{"-skip", skip}, c.packages, c.after), s); err != nil {
		return err
	}
	before := slices.DeleteFunc(slices.Clone(c.before), measures)
	for name, packages := range others {
		if err := c.start(ctx, slices.Concat(before, []string{"-run", "^" + name + "$"}, packages, c.after), s); err != nil {
			return err
		}
	}
	return nil
}

// namesakes finds the packages of the command that have a test with the same name as an excluded test of another
// package.
func (c command) namesakes(ctx context.Context) (others map[string][]string, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}"}, c.packages...)...)
	cmd.Dir, cmd.Stderr = c.dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the packages: %w", err)
	}
	others = map[string][]string{}
	for _, a := range c.quarantine {
		for line := range strings.Lines(string(out)) {
			pkg, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			has, err := hasTest(dir, a.Test)
			holds := func(a2 outcome.Allowance) bool { return a2.Test == a.Test && a2.Holds(pkg) }
			switch {
			case err != nil:
				return nil, err
			case !has && a.Holds(pkg):
				return nil, fmt.Errorf("the quarantine names %s of %s, and there is none: take the line out", a.Test, pkg)
			case has && !slices.ContainsFunc(c.quarantine, holds) && !slices.Contains(others[a.Test], pkg):
				others[a.Test] = append(others[a.Test], pkg)
			}
		}
	}
	return others, nil
}

// hasTest reports whether a folder has a test with this name.
func hasTest(dir, name string) (bool, error) {
	files, err := filepath.Glob(regexp.MustCompile(`[\[\]*?\\]`).ReplaceAllString(dir, `\$0`) + "/*_test.go")
	if err != nil {
		return false, fmt.Errorf("cannot look for tests: %w", err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + name + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, fmt.Errorf("cannot look for tests: %w", err)
		}
		if declared.Match(text) {
			return true, nil
		}
	}
	return false, nil
}
