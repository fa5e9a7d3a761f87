package filesystem

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stowage-csi/stowage/tests/mountns"
)

// seedFlag names what the tests that draw numbers draw them by.
const seedFlag = "seed"

func TestMain(m *testing.M) {
	flag.Uint64(seedFlag, 1, "what TestRecoverOfAKilledResize draws its instants by")
	os.Exit(mountns.IsolateInMemory(m.Run))
}

// drawing returns what a test draws its numbers from, and tells the test by which seed.
func drawing(t *testing.T) *rand.Rand {
	t.Helper()
	seed, _ := strconv.ParseUint(flag.Lookup(seedFlag).Value.String(), 10, 64) // what the flag itself took
	t.Logf("-%s %d", seedFlag, seed)
	return rand.New(rand.NewPCG(seed, 0))
}
