package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// allowance is a reason for which the suite may skip specs.
type allowance struct {
	// Definitions are the names of the definitions that it applies to. If the list is empty, it applies to all.
	Definitions []string `json:"definitions"`
	// Message is a regular expression that matches the whole first line of the suite's skip message.
	Message string `json:"message"`
	// Suite is a regular expression of the suite's name. If it is empty, any suite matches.
	Suite string `json:"suite"`
	// Reason explains why the specs are skipped, and why that is right.
	Reason string `json:"reason"`

	message, suite *regexp.Regexp
	used           map[string]bool // the definitions in which it allowed a skip
}

// exclusion describes specs that do not run at all.
type exclusion struct {
	// Spec is a regular expression of the spec's whole text.
	Spec string `json:"spec"`
	// Reason explains why no driver, or not this one, can pass the spec.
	Reason string `json:"reason"`
}

// exceptions lists all specs that need not pass.
type exceptions struct {
	Excluded []exclusion  `json:"excluded"`
	Skipped  []*allowance `json:"skipped"`
}

// readExceptions reads the exceptions from a file.
func readExceptions(path string, known []definition) (*exceptions, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list := &exceptions{}
	if err := yaml.UnmarshalStrict(text, list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, a := range list.Skipped {
		if err := a.check(known); err != nil {
			return nil, fmt.Errorf("%s: skipped, entry %d: %w", path, i+1, err)
		}
	}
	for i, e := range list.Excluded {
		if e.Spec == "" || e.Reason == "" {
			return nil, fmt.Errorf("%s: excluded, entry %d: want a spec and a reason", path, i+1)
		}
		if _, err := regexp.Compile(e.Spec); err != nil {
			return nil, fmt.Errorf("%s: excluded, entry %d: %w", path, i+1, err)
		}
	}
	return list, nil
}

func (a *allowance) check(known []definition) error {
	if a.Reason == "" || a.Message == "" {
		return fmt.Errorf("want a message and a reason")
	}
	for _, name := range a.Definitions {
		if !slices.ContainsFunc(known, func(d definition) bool { return d.name == name }) {
			return fmt.Errorf("there is no definition %q", name)
		}
	}
	var err error
	if a.message, err = regexp.Compile(`^(?:` + a.Message + `)$`); err != nil {
		return err
	}
	a.suite, err = regexp.Compile(`^(?:` + a.Suite + `)$`)
	a.used = map[string]bool{}
	return err
}

// covers reports whether the spec of the definition may be skipped.
func (a *allowance) covers(definition string, s spec) bool {
	return a.holds(definition) && a.message.MatchString(firstLine(s.message)) &&
		(a.Suite == "" || a.suite.MatchString(s.suite))
}

func (a *allowance) holds(definition string) bool {
	return len(a.Definitions) == 0 || slices.Contains(a.Definitions, definition)
}

// allowed returns the first allowance that covers the spec, or nil if none does.
func (e *exceptions) allowed(definition string, s spec) *allowance {
	for _, a := range e.Skipped {
		if a.covers(definition, s) {
			a.used[definition] = true
			return a
		}
	}
	return nil
}

// idle returns the allowances that were not used, once all specs of the definitions have run.
func (e *exceptions) idle(ran []definition) []string {
	var all []string
	for i, a := range e.Skipped {
		for _, name := range a.Definitions {
			if !a.used[name] && slices.ContainsFunc(ran, func(d definition) bool { return d.name == name }) {
				all = append(all, fmt.Sprintf("skips.yaml: skipped, entry %d (%s) allowed nothing for %s: take it off", i+1,
					a.Message, name))
			}
		}
		if len(a.Definitions) == 0 && len(a.used) == 0 {
			all = append(all, fmt.Sprintf("skips.yaml: skipped, entry %d (%s) allowed nothing: take it off", i+1, a.Message))
		}
	}
	return all
}
