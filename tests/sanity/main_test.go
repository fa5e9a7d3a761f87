package sanity

import (
	"flag"
	"os"
	"testing"

	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(mountns.IsolateInMemory(func() int {
		if !*kernel {
			return m.Run()
		}
		return nfsd.Serve(func(path string) int {
			*nfsServer, *nfsShare = "127.0.0.1", path
			return m.Run()
		})
	}))
}
