package device

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/stall"
)

func TestMain(m *testing.M) {
	stall.Main()
	os.Exit(mountns.IsolateInMemory(m.Run))
}
