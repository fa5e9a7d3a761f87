package inside

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// ErrOutside reports that this machine is not a guest of tests/vm/run.
var ErrOutside = errors.New("this runs in the guest that tests/vm/run boots, and nowhere else: use make vm-test")

// Check returns ErrOutside outside the guest, where the mark on the kernel's command line is missing.
func Check() error {
	text, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(text)), wire.Mark) {
		return ErrOutside
	}
	return nil
}

// Main runs the tests of a package in their own mount namespace, and returns the exit code for TestMain. Outside the
// guest it fails.
func Main(m *testing.M) int {
	if err := Check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return mountns.Isolate(m.Run)
}
