package plants

import (
	"errors"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// Search is a search for a defect in the program of tests that has it.
type Search struct {
	// Given is the seed that was asked for, and Usual the one from which the search finds each of its plants. A plant that
	// needs a rare schedule says its own.
	Given, Usual string
	// Run runs the program from a seed on.
	Run func(seed string) (output []byte, err error)
	// Line is the part of the output that says how the defect was found, empty for none.
	Line func(output string) string
}

// Sought runs a search until it finds the plant. A seed that is drawn anew may be an unlucky one: then the usual one
// decides.
func (p Plant) Sought(t *testing.T, s Search) {
	t.Helper()
	seeds := slices.Compact([]string{s.Given, s.Usual})
	if own := p.Values["seed"]; own != "" {
		seeds = []string{own}
	}
	for i, seed := range seeds {
		began := time.Now()
		output, err := s.Run(seed)
		took := time.Since(began).Round(time.Second)
		_, failed := errors.AsType[*exec.ExitError](err)
		line := s.Line(string(output))
		switch {
		case failed && line != "":
			t.Logf("found in %v: %s", took, line)
			return
		case i == len(seeds)-1:
			t.Fatalf("not found from seed %s on in %v: %v\n%s", seed, took, err, output)
		default:
			t.Logf("not found from seed %s on in %v (%v): seed %s decides", seed, took, err, s.Usual)
		}
	}
}
