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

// ErrOutside says that this is no guest of tests/vm/run.
var ErrOutside = errors.New("this runs in the guest that tests/vm/run boots, and nowhere else: use make vm-test")

// Check fails with ErrOutside when this is no guest: the mark on the kernel's command line is missing.
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

// Main is for TestMain: it returns the exit code of the tests, which run in a mount namespace of their own. Outside
// the guest it fails.
func Main(m *testing.M) int {
	if err := Check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return mountns.Isolate(m.Run)
}
