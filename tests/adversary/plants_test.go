package adversary

import (
	"cmp"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/plants"
)

var planting = flag.Bool("plants", false,
	"plant each defect of plants/ into the code, and look whether it is found; nothing else")

// plantTime is the time limit for finding a planted defect.
const plantTime = 4 * time.Minute

// TestPlants shows that the adversary finds each planted defect within the time limit. Without -plants it only shows
// that each can still be planted: its patch applies to the code, which builds with it.
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
	where := regexp.MustCompile(`schedule \d+, seed \d+, profile \w+, after.*`)
	p.Sought(t, plants.Search{
		Given: fmt.Sprint(*seed), Usual: "0",
		Run: func(seed string) (output []byte, err error) {
			return exec.CommandContext(t.Context(), program, "-test.v", "-test.run", "^TestAdversary$", "-setup",
				p.Values["setup"], "-profile", p.Values["profile"], "-budget", cmp.Or(*budget, plantTime).String(),
				"-shrink", "0s", "-hasty", "-seed", seed).CombinedOutput()
		},
		Line: func(output string) string {
			if !p.Violation.MatchString(output) {
				return ""
			}
			return cmp.Or(where.FindString(output), p.Violation.FindString(output))
		},
	})
}
