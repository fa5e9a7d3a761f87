package nfs

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/nfs"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

var versions = flag.String("nfsvers", "4.2", "the versions of NFS with which the conformance suite is run, with commas")

// TestConformance runs the contract's suite over a real server. Package nfs runs it over the stand-in.
func TestConformance(t *testing.T) {
	if *server == "" {
		t.Skip("NOT RUN: it needs -server and -share; package nfs runs it over directories that stand for a server")
	}
	for version := range strings.SplitSeq(*versions, ",") {
		t.Run("NFS "+version, func(t *testing.T) { conform(t, version) })
	}
}

func conform(t *testing.T, version string) {
	begun := time.Now()
	empty := &emptyShares{}
	harness := backendtest.Over(nfs.Definition(), func(tb testing.TB, o *backends.Options) {
		empty.next(tb)
		// The suite lists before it creates anything.
		o.Config.(*nfs.Config).Shares = []nfs.ShareConfig{{Name: "conformance", Server: *server, Share: empty.share,
			NFSVersion: version}}
	})
	harness.Nodes = []string{"node-a"}
	harness.Spec = func(name string) backends.Spec {
		modes := append(backends.SingleNodeModes(), backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter,
			backends.MultiNodeMultiWriter)
		return backends.Spec{
			Name: name, Capacity: backends.CapacityRange{RequiredBytes: 2 << 20},
			Parameters: &nfs.Parameters{Server: *server, Share: empty.share, NFSVersion: version},
			Access:     backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: modes},
		}
	}
	harness.SnapshotParameters = &nfs.SnapshotParameters{}
	retain := "retain"
	harness.Modifications = []backendtest.Modification{{Value: &nfs.Mutable{OnDelete: &retain}}}
	harness.Write = func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment, data []byte) {
		mounted(tb, instance, attachment,
			func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), data, 0o640) })
	}
	harness.Read = func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment) (data []byte) {
		mounted(tb, instance, attachment, func(dir string) (err error) {
			data, err = os.ReadFile(filepath.Join(dir, "file"))
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		return data
	}
	backendtest.Run(t, harness)
	t.Logf("with NFS %s it took %v", version, time.Since(begun).Round(time.Second))
}

// emptyShares creates directories on the server's export, one for each check.
type emptyShares struct {
	share string
	count int
}

func (e *emptyShares) next(tb testing.TB) {
	tb.Helper()
	address, err := export.Parse(*server, *share, "")
	if err != nil {
		tb.Fatal(err)
	}
	root, err := export.Kernel{}.Open(tb.Context(), address)
	if err != nil {
		tb.Fatal(err)
	}
	defer root.Close()
	e.count++
	name := fmt.Sprintf("conformance-%d-%d", time.Now().UnixNano(), e.count)
	if err := unix.Mkdirat(int(root.Dir.Fd()), name, 0o755); err != nil {
		tb.Fatal(err)
	}
	e.share = filepath.Join(*share, name)
}

// mounted runs a function in a volume as a pod would.
func mounted(tb testing.TB, instance *backends.Instance, attachment backends.Attachment, work func(dir string) error) {
	tb.Helper()
	source, err := instance.Node.Source(tb.Context(), attachment)
	if err != nil {
		tb.Fatal(err)
	}
	exported := source.(backends.Export)
	dir := filepath.Join(tb.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	target, err := safepath.OpenTarget(dir)
	if err != nil {
		tb.Fatal(err)
	}
	defer target.Close()
	fs := mount.Filesystem{Type: exported.FSType, Source: exported.Source, Options: exported.Options,
		Prove: exported.Prove}
	if _, err := mount.Mount(tb.Context(), fs, target); err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(work(dir), mount.Unmount(tb.Context(), dir)); err != nil {
		tb.Fatal(err)
	}
}
