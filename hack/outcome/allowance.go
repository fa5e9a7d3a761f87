package outcome

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Allowance is a test that may be skipped, or left out.
type Allowance struct {
	Pkg    string // the end of the import path
	Test   string // the test's name; with a trailing /* also all its subtests
	Specs  int    // for a Ginkgo suite, the number of specs that may be skipped; 0 otherwise
	Reason string
}

// ReadAllowances reads a list of tests, or nothing if the path is empty. Each line has the package, the test and the
// reason, separated by blanks. TestX:7 allows seven skipped specs in the Ginkgo suite that TestX runs, and TestX:* any
// number, because TestX itself fails for a spec that may not be skipped. A # begins a comment line.
func ReadAllowances(path string) ([]Allowance, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of tests: %w", err)
	}
	var list []Allowance
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

func parseAllowance(line string) (Allowance, error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return Allowance{}, fmt.Errorf("%q: want a package, a test and a reason", line)
	}
	a := Allowance{Pkg: fields[0], Test: fields[1], Reason: strings.Join(fields[2:], " ")}
	name, number, ok := strings.Cut(a.Test, ":")
	if !ok {
		return a, nil
	}
	n, err := strconv.Atoi(number)
	if number == "*" {
		n, err = math.MaxInt, nil
	}
	if err != nil || n < 1 {
		return Allowance{}, fmt.Errorf("%q: after the colon, want how many specs may be skipped, or * for any number", a.Test)
	}
	a.Test, a.Specs = name, n
	return a, nil
}

// Holds reports whether the allowance is for the package.
func (a Allowance) Holds(pkg string) bool { return pkg == a.Pkg || strings.HasSuffix(pkg, "/"+a.Pkg) }

// Covers reports whether a skip of the test is allowed; specs is 0 for the test itself.
func (a Allowance) Covers(pkg, test string, specs int) bool {
	if !a.Holds(pkg) {
		return false
	}
	if specs > a.Specs || (specs == 0) != (a.Specs == 0) {
		return false
	}
	parent, wild := strings.CutSuffix(a.Test, "/*")
	return test == parent || (wild && strings.HasPrefix(test, parent+"/"))
}
