package nfs

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// exportedFlag holds the path that the kernel's server exports.
const exportedFlag = "exported"

func exported() string { return flag.Lookup(exportedFlag).Value.String() }

// testMain runs the tests, with the kernel's NFS server if requested.
func testMain(m *testing.M) int {
	kernel := flag.Bool("nfsd", false,
		"reach the stand-ins for servers through the kernel's NFS server and client: in the guest of tests/vm/run, and "+
			"nowhere else")
	flag.String(exportedFlag, "", "for -nfsd itself")
	flag.Parse()
	if !*kernel {
		return mountns.IsolateInMemory(m.Run)
	}
	return mountns.Isolate(func() int {
		return nfsd.Serve(func(path string) int {
			if err := flag.Set(exportedFlag, path); err != nil {
				panic(err)
			}
			return m.Run()
		})
	})
}

// newServers returns a folder for the directories that stand for servers, and how they are reached. All are below the
// directory that the kernel's server exports, so that the server does not stop a path that leads out of one.
func newServers(tb testing.TB) (dir string, mounter func(standin.Servers) export.Mounter) {
	tb.Helper()
	if exported() == "" {
		return tb.TempDir(), func(s standin.Servers) export.Mounter { return s }
	}
	dir, err := os.MkdirTemp(exported(), "servers-") //nolint:usetesting // It must be below what is exported.
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return dir, func(s standin.Servers) export.Mounter { return standin.OverKernel{Servers: s} }
}

// noticed waits until the client has noticed the changes on the server.
func (w *world) noticed() {
	if exported() != "" {
		<-time.After(1500 * time.Millisecond)
	}
}
