package sanity

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

// If the kernel has NFS, a real server is used.
var (
	nfsServer = flag.String("nfs-server", "",
		"the NFS server to test the nfs backend with; without it a directory stands for one")
	nfsShare = flag.String("nfs-share", "/", "what the NFS server exports")
	kernel   = flag.Bool("nfsd", false,
		"start the kernel's NFS server and test with it: in the guest of tests/vm/run, and nowhere else")
)

// nfsSetup returns the nfs backend with a share of one zone, on a real server if there is one.
func nfsSetup(t testing.TB) setup {
	s := setup{name: "nfs", backend: "nfs", access: "mount", mutable: map[string]string{"onDelete": "delete"},
		parameters: map[string]string{"shareName": "zonal"}, topology: backends.Topology{"example.com/zone": "a"}}
	configure := func(server, share string) string {
		return fmt.Sprintf("shares: [{name: zonal, server: %q, share: %q, topology: {example.com/zone: a}}]", server, share)
	}
	if *nfsServer != "" {
		s.config = configure(*nfsServer, *nfsShare)
		return s
	}
	servers := t.TempDir()
	if err := os.MkdirAll(filepath.Join(servers, "standin", "export"), 0o755); err != nil {
		t.Fatal(err)
	}
	definition := nfs.DefinitionOver(standin.Servers(servers))
	s.name, s.definition, s.config = "nfs over a stand-in", &definition, configure("standin", "/export")
	return s
}
