package filesystem

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stowage-csi/stowage/tests/mountns"
)

// seedFlag is the flag for the seed of the tests that draw numbers.
const seedFlag = "seed"

func TestMain(m *testing.M) {
	flag.Uint64(seedFlag, 1, "what TestRecoverOfAKilledResize draws its instants by")
	os.Exit(mountns.IsolateInMemory(m.Run))
}

// drawing returns the random source of a test, and logs the seed.
func drawing(t *testing.T) *rand.Rand {
	t.Helper()
	seed, _ := strconv.ParseUint(flag.Lookup(seedFlag).Value.String(), 10, 64) // what the flag itself took
	t.Logf("-%s %d", seedFlag, seed)
	return rand.New(rand.NewPCG(seed, 0))
}
