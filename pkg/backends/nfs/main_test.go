package nfs

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/tests/stall"
)

func TestMain(m *testing.M) {
	stall.Main()
	if len(os.Args) == 3 && os.Args[1] == churnWord {
		churn(os.Args[2])
	}
	if len(os.Args) == 4 && (os.Args[1] == cloneWord || os.Args[1] == snapshotWord) {
		os.Exit(otherController(os.Args[1], os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 3 && os.Args[1] == squashWord {
		os.Exit(squashed(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == nodeWord {
		os.Exit(squashedNode(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == ownerWord {
		os.Exit(squashedOwner(os.Args[2]))
	}
	os.Exit(testMain(m))
}
