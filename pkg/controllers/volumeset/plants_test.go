package volumeset

import (
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stowage-csi/stowage/tests/plants"
)

//nolint:gochecknoglobals // A flag.
var planting = flag.Bool("plants", false, "plant each defect of plants/ into the code, and look whether it is found")

// TestPlants shows that the simulation finds each planted defect, in as many steps as a run of the tests takes, with
// the same seeds or those from the plant's on. Without -plants it only shows that each defect can still be planted: its
// patch applies, and the code builds with it.
func TestPlants(t *testing.T) {
	plants.Each(t, "../../..", "plants", func(t *testing.T, p plants.Plant) {
		if *planting {
			isFound(t, p)
		} else {
			p.Builds(t)
		}
	})
}

// isFound searches for the defect.
func isFound(t *testing.T, p plants.Plant) {
	t.Helper()
	program := p.Program(t, "pkg/controllers/volumeset")
	where := regexp.MustCompile(`seed \d+, after \d+ steps, \d+ in all: .*`)
	p.Sought(t, plants.Search{
		Given: fmt.Sprint(*simSeed), Usual: "1",
		Run: func(seed string) (output []byte, err error) {
			return exec.CommandContext(t.Context(), program, "-test.run", "^TestSimulation$", "-seed", seed, "-steps",
				fmt.Sprint(*simSteps)).CombinedOutput()
		},
		Line: func(output string) string {
			line := where.FindString(output)
			if !p.Violation.MatchString(line) {
				return ""
			}
			return line
		},
	})
}
