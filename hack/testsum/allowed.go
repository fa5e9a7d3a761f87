package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// allowance is a test that may be skipped.
type allowance struct {
	pkg    string // the end of the import path
	test   string // the test's name; with a trailing /* also all its subtests
	specs  int    // for a Ginkgo suite, the number of specs that may be skipped; 0 otherwise
	reason string
}

// readAllowed reads the list. Each line has the package, the test and the reason, separated by blanks. TestX:7 allows
// seven skipped specs in the Ginkgo suite that TestX runs. A # begins a comment line.
func readAllowed(path string) ([]allowance, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of skips: %w", err)
	}
	var list []allowance
	for number, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		a, err := parseAllowance(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number+1, err)
		}
		list = append(list, a)
	}
	return list, nil
}

func parseAllowance(line string) (allowance, error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return allowance{}, fmt.Errorf("%q: want a package, a test and a reason", line)
	}
	a := allowance{pkg: fields[0], test: fields[1], reason: strings.Join(fields[2:], " ")}
	name, number, ok := strings.Cut(a.test, ":")
	if !ok {
		return a, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return allowance{}, fmt.Errorf("%q: after the colon, want how many specs may be skipped", a.test)
	}
	a.test, a.specs = name, n
	return a, nil
}

// holds reports whether the allowance is for the package.
func (a allowance) holds(pkg string) bool { return pkg == a.pkg || strings.HasSuffix(pkg, "/"+a.pkg) }

// covers reports whether a skip of the test is allowed; specs is 0 for the test itself.
func (a allowance) covers(pkg, test string, specs int) bool {
	if !a.holds(pkg) {
		return false
	}
	if specs > a.specs || (specs == 0) != (a.specs == 0) {
		return false
	}
	parent, wild := strings.CutSuffix(a.test, "/*")
	return test == parent || (wild && strings.HasPrefix(test, parent+"/"))
}
