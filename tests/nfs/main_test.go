package nfs

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/nfs"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

var (
	server = flag.String("server", "", "the NFS server to test with; without it a directory stands for one")
	share  = flag.String("share", "/", "what the NFS server exports")
	kernel = flag.Bool("nfsd", false,
		"start the kernel's NFS server and test with it: in the guest of tests/vm/run, and nowhere else")
	dir = flag.String("dir", "",
		"the directory on whose filesystem the stand-in is; by default that of temporary files")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(mountns.Isolate(func() int {
		if !*kernel {
			return m.Run()
		}
		return nfsd.Serve(func(path string) int {
			*server, *share = "127.0.0.1", path
			return m.Run()
		})
	}))
}

// world is a driver with a share.
type world struct {
	testing.TB
	*inprocess.Driver
	root   string // of the share; empty with a real server
	params map[string]string
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	if *server != "" {
		driver := inprocess.Start(tb, inprocess.Options{Backend: "nfs"})
		return &world{TB: tb, Driver: driver, params: map[string]string{"server": *server, "share": *share}}
	}
	servers := tb.TempDir()
	if *dir != "" {
		var err error
		if servers, err = os.MkdirTemp(*dir, "standin-"); err != nil { //nolint:usetesting // on the filesystem that was asked for
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = os.RemoveAll(servers) }) // it belongs to a test
	}
	root := filepath.Join(servers, "standin", "export")
	if err := os.MkdirAll(root, 0o755); err != nil {
		tb.Fatal(err)
	}
	definition := nfs.DefinitionOver(standin.Servers(servers))
	driver := inprocess.Start(tb, inprocess.Options{Definition: &definition})
	return &world{TB: tb, Driver: driver, root: root, params: map[string]string{"server": "standin", "share": "/export"}}
}
