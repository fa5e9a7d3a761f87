package volumeset

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stowage-csi/stowage/tests/plants"
)

//nolint:gochecknoglobals // A flag.
var planting = flag.Bool("plants", false, "plant each defect of plants/ into the code, and look whether it is found")

// TestPlants shows that the simulation finds what it is there for: each planted defect, in as many steps as each run of
// the tests takes, with the same seeds or with those from the plant's on. Without -plants it shows only that each can
// still be planted: its patch fits the code, which builds with it.
func TestPlants(t *testing.T) {
	plants.Each(t, "../../..", "plants", func(t *testing.T, p plants.Plant) {
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
	program := p.Program(t, "pkg/controllers/volumeset")
	steps, seed := fmt.Sprint(*simSteps), cmp.Or(p.Values["seed"], fmt.Sprint(*simSeed))
	args := []string{"-test.run", "^TestSimulation$", "-seed", seed, "-steps", steps}
	output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	_, failed := errors.AsType[*exec.ExitError](err)
	line := regexp.MustCompile(`seed \d+, after \d+ steps, \d+ in all: .*`).FindString(string(output))
	if !failed || !p.Violation.MatchString(line) {
		t.Fatalf("not found from seed %s on in %s steps: %v\n%s", seed, steps, err, output)
	}
	t.Log("found with " + line)
}
