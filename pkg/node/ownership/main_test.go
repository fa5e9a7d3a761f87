package ownership

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/tests/mountns"
)

func TestMain(m *testing.M) { os.Exit(mountns.IsolateInMemory(m.Run)) }
