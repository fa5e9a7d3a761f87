package node_test

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
)

// seedFlag is the flag for the seed of the tests that draw numbers.
const seedFlag = "seed"

func defineSeed() {
	flag.Uint64(seedFlag, 1, "what TestKilled and TestChurn draw their numbers by")
}

func seed() uint64 {
	number, _ := strconv.ParseUint(flag.Lookup(seedFlag).Value.String(), 10, 64) // what the flag itself took
	return number
}

// drawing returns the random source for one part of a test, and logs the seed.
func drawing(t testing.TB, part uint64) *rand.Rand {
	t.Helper()
	t.Logf("-%s %d", seedFlag, seed())
	return rand.New(rand.NewPCG(seed(), part))
}
