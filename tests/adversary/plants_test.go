package adversary

import (
	"cmp"
	"errors"
	"flag"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/plants"
)

var planting = flag.Bool("plants", false,
	"plant each defect of plants/ into the code, and look whether it is found; nothing else")

// plantTime is how long a planted defect is looked for.
const plantTime = 4 * time.Minute

// TestPlants shows that the adversary finds what it is there for: each planted defect, within a time. Without -plants
// it shows only that each can still be planted: its patch fits the code, which builds with it.
func TestPlants(t *testing.T) {
	plants.Each(t, "../..", "plants", func(t *testing.T, p plants.Plant) {
		if p.Values["setup"] == "" {
			t.Fatal("the plant lacks a setup")
		}
		if *planting {
			isFound(t, p)
		} else {
			p.Builds(t)
		}
	})
}

// isFound looks for the defect.
func isFound(t *testing.T, p plants.Plant) {
	t.Helper()
	program := p.Program(t, "tests/adversary")
	began := time.Now()
	args := []string{
		"-test.v", "-test.run", "^TestAdversary$", "-setup", p.Values["setup"], "-profile", p.Values["profile"],
		"-budget", cmp.Or(*budget, plantTime).String(), "-shrink", "0s", "-hasty",
	}
	if seed := p.Values["seed"]; seed != "" { // Where a defect needs a rare schedule.
		args = append(args, "-seed", seed)
	}
	output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	_, failed := errors.AsType[*exec.ExitError](err)
	found := p.Violation.FindString(string(output))
	if !failed || found == "" {
		t.Fatalf("not found in %v: %v\n%s", time.Since(began), err, output)
	}
	line := regexp.MustCompile(`schedule \d+, seed \d+, profile \w+, after.*`).FindString(string(output))
	t.Logf("found in %v: %s", time.Since(began).Round(time.Second), line)
}
