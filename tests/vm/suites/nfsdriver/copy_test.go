package nfsdriver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// TestCopiesAreFresh has snapshots taken right after somebody else than the controller has written, which has just looked at the same file:
// what its kernel remembers of them must not get into the copy. The writer is on the server, as good as a third machine.
func TestCopiesAreFresh(t *testing.T) {
	s := newSite(t, nfsd.Config{})
	for _, version := range []string{"3", "4.2"} {
		t.Run(version, func(t *testing.T) {
			within := *s
			within.T = t
			driver := inprocess.Start(t, inprocess.Options{Backend: "nfs"})
			for i := range 3 {
				within.copied(driver, version, fmt.Sprint("source-", version, "-", i))
			}
		})
	}
}

func (s *site) copied(driver *inprocess.Driver, version, name string) {
	controller := csi.NewControllerClient(driver.Conn)
	source := newLife(s.T, driver.Conn, name, direct, s.export.Path)
	source.params["nfsvers"] = version
	s.must(source.do(s.Context(), "create"))
	write := func(text string) {
		s.must(os.WriteFile(filepath.Join(s.export.Path, name, "file"), []byte(text), 0o644))
	}
	write("first")
	s.lookedAt(filepath.Join(name, "file"))
	const text = "the second, which is longer"
	write(text) // The directory stays as it was: reading it anew would bring the file's length too.
	made, err := controller.CreateSnapshot(s.Context(), &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: source.id})
	s.must(err)
	s.restored(controller, source, made.GetSnapshot().GetSnapshotId(), text)
	s.must(source.do(s.Context(), "delete"))
}

// restored checks what a snapshot has, and deletes it.
func (s *site) restored(controller csi.ControllerClient, source *life, id, text string) {
	restored, err := controller.CreateVolume(s.Context(), &csi.CreateVolumeRequest{
		Name: source.name + "-restored", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20}, VolumeCapabilities: []*csi.VolumeCapability{capability()},
		Parameters:          source.params,
		VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}},
	})
	s.must(err)
	found, err := os.ReadFile(filepath.Join(s.export.Path, source.name+"-restored", "file"))
	if err != nil || string(found) != text {
		s.Errorf("restored is %q, %v; want %q", found, err, text)
	}
	_, err = controller.DeleteVolume(s.Context(), &csi.DeleteVolumeRequest{VolumeId: restored.GetVolume().GetVolumeId()})
	s.must(err)
	_, err = controller.DeleteSnapshot(s.Context(), &csi.DeleteSnapshotRequest{SnapshotId: id})
	s.must(err)
}

// lookedAt has the controller's own mount know a file and its directory, as of now: the mount is attached nowhere, but open in this process.
func (s *site) lookedAt(file string) {
	open, err := filepath.Glob("/proc/self/fd/*")
	s.must(err)
	known := 0
	for _, root := range open {
		var stat unix.Statfs_t
		if unix.Statfs(root, &stat) != nil || stat.Type != unix.NFS_SUPER_MAGIC {
			continue
		}
		if _, err := os.ReadDir(filepath.Join(root, filepath.Dir(file))); err != nil {
			continue
		}
		if found, err := os.Open(filepath.Join(root, file)); err == nil {
			s.must(found.Close())
			known++
		}
	}
	if known == 0 {
		s.Fatal("the controller has no mount of its own")
	}
}
