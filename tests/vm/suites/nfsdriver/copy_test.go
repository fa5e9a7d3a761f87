package nfsdriver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// TestCopiesAreFresh takes snapshots just after another client than the controller has written. The controller has read
// the same file before: cached data of its kernel must not get into the copy. The writer is on the server, which is
// equivalent to a third machine.
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

// TestCopiesOfWhatTheSameClientWrote takes snapshots of data that a pod wrote through the same kernel's NFS client,
// which the controller shares. The server does not recall a delegation from the client that writes, so that the
// controller must hold none.
//
// With NFS 4.0 a client cannot decline a delegation for one file: it must have none at all. Whether the server grants
// any is observed with 4.1.
func TestCopiesOfWhatTheSameClientWrote(t *testing.T) {
	s := newSite(t, nfsd.Config{Versions: []string{"3", "4.0", "4.1", "4.2"}})
	for _, one := range []struct{ version, delegating string }{{"3", ""}, {"4.0", "4.1"}, {"4.1", "4.1"}, {"4.2", "4.2"}} {
		t.Run(one.version, func(t *testing.T) {
			version, delegating := one.version, one.delegating
			within := *s
			within.T = t
			if delegating != "" {
				within.delegates(delegating)
			}
			driver := inprocess.Start(t, inprocess.Options{Backend: "nfs"})
			controller := csi.NewControllerClient(driver.Conn)
			source := newLife(t, driver.Conn, "written-"+version, direct, s.export.Path)
			source.params["nfsvers"] = version
			within.must(source.patiently(t.Context(), "create"))
			for _, text := range []string{"first", "other", "longer than that", "short"} {
				within.must(source.patiently(t.Context(), "stage", "publish"))
				within.must(os.WriteFile(filepath.Join(source.target, "file"), []byte(text), 0o644))
				within.must(source.patiently(t.Context(), "unpublish", "unstage"))
				made, err := taken(t.Context(), controller, &csi.CreateSnapshotRequest{Name: version + " " + text,
					SourceVolumeId: source.id})
				within.must(err)
				within.restored(controller, source, made.GetSnapshot().GetSnapshotId(), text)
			}
			within.must(source.patiently(t.Context(), "delete"))
		})
	}
}

// delegates waits until the server grants delegations, which it does not do in its first minute.
func (s *site) delegates(version string) {
	s.Helper()
	root, err := export.Kernel{}.Open(s.Context(), export.Address{Server: direct, Path: s.export.Path, Version: version})
	s.must(err)
	defer func() { s.must(root.Close()) }()
	name := filepath.Join("/proc/self/fd", fmt.Sprint(root.Dir.Fd()), "delegated-"+version)
	s.must(os.WriteFile(name, []byte("something"), 0o644))
	defer func() { s.must(os.Remove(name)) }()
	begun, tick := time.Now(), time.NewTicker(pause)
	defer tick.Stop()
	for ; time.Since(begun) < patience; <-tick.C {
		_, err := os.ReadFile(name)
		s.must(err)
		states, err := filepath.Glob("/proc/fs/nfsd/clients/*/states")
		s.must(err)
		for _, path := range states {
			if known, err := os.ReadFile(path); err == nil && strings.Contains(string(known), "type: deleg") {
				s.Logf("the server delegates after %v", time.Since(begun).Round(time.Second))
				return
			}
		}
	}
	s.Fatal("the server gives no delegations, so that nothing would be tested")
}

func (s *site) copied(driver *inprocess.Driver, version, name string) {
	controller := csi.NewControllerClient(driver.Conn)
	source := newLife(s.T, driver.Conn, name, direct, s.export.Path)
	source.params["nfsvers"] = version
	s.must(source.patiently(s.Context(), "create"))
	write := func(text string) {
		s.must(os.WriteFile(filepath.Join(s.export.Path, name, "file"), []byte(text), 0o644))
	}
	write("first")
	s.lookedAt(filepath.Join(name, "file"))
	const text = "the second, which is longer"
	write(text) // The directory stays unchanged: a new read of it would also return the file's length.
	made, err := taken(s.Context(), controller, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: source.id})
	s.must(err)
	s.restored(controller, source, made.GetSnapshot().GetSnapshotId(), text)
	s.must(source.patiently(s.Context(), "delete"))
}

// restored restores a snapshot, checks the content, and deletes the copy.
func (s *site) restored(controller csi.ControllerClient, source *life, id, text string) {
	request := &csi.CreateVolumeRequest{
		Name: source.name + "-restored", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20},
		VolumeCapabilities: []*csi.VolumeCapability{capability()},
		Parameters:         source.params,
		VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id},
		}},
	}
	restored, err := answered(s.Context(), func(ctx context.Context) (*csi.CreateVolumeResponse, error) {
		return controller.CreateVolume(ctx, request)
	})
	s.must(err)
	found, err := os.ReadFile(filepath.Join(s.export.Path, source.name+"-restored", "file"))
	if err != nil || string(found) != text {
		s.Errorf("restored is %q, %v; want %q", found, err, text)
	}
	s.must(done(s.Context(), func(ctx context.Context) error {
		_, err := controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: restored.GetVolume().GetVolumeId()})
		return err
	}))
	s.must(dropped(s.Context(), controller, id))
}

// lookedAt makes the controller's own mount cache a file and its directory. The mount is attached nowhere, but open in
// this process.
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
