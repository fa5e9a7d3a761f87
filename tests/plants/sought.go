package plants

import (
	"errors"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// Search is a search for a defect with a test program that contains it.
type Search struct {
	// Given is the requested seed, and Usual the seed with which the search finds every plant. A plant that needs a rare
	// schedule has its own seed.
	Given, Usual string
	// Run runs the program from a seed on.
	Run func(seed string) (output []byte, err error)
	// Line returns the line of the output that reports the finding, or an empty string if there is none.
	Line func(output string) string
}

// Sought runs a search until it finds the plant. A random seed may be unlucky: then the usual one decides.
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
