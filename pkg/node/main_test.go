package node_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/stall"
)

// victim makes the test's binary the process that TestKilled kills. It works in its parent's namespace.
const victim = "-test.run=^TestVictim$"

func TestMain(m *testing.M) {
	stall.Main()
	if i := slices.Index(os.Args, prying); i > 0 && i+1 < len(os.Args) {
		pry(os.Args[i+1])
		os.Exit(0)
	}
	defineChurn()
	defineSeed()
	if slices.Contains(os.Args, victim) {
		os.Exit(m.Run())
	}
	os.Exit(mountns.IsolateInMemory(m.Run))
}
