package nfsdriver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// controllerCapabilities returns the capabilities of the controller in the manifests; deploy/tests reads them here.
func controllerCapabilities() []string {
	return []string{"SYS_ADMIN", "FOWNER", "MKNOD"}
}

// TestControllerNeedsItsCapabilities has a controller do all of its work, with all kinds of files that pods leave,
// first with the capabilities of the manifests, and then without one of them at a time: each must be necessary. The
// server decides about the ownership and the permissions of the files.
func TestControllerNeedsItsCapabilities(t *testing.T) {
	s := newSite(t, nfsd.Config{Versions: []string{"3", "4.2"}})
	all := controllerCapabilities()
	for _, version := range []string{"3", "4.2"} {
		if err := s.confinedLife(t, version, all); err != nil {
			t.Errorf("NFS %s, with %v: %v", version, all, err)
		}
	}
	for _, one := range all {
		rest := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == one })
		err := s.confinedLife(t, "4.2", rest)
		t.Logf("without %s: %v", one, err)
		if err == nil {
			t.Errorf("nothing needs %s", one)
		}
	}
}

// confinedLife takes one volume through its life, with files of pods in it. The error is that of the first failed call.
func (s *site) confinedLife(t *testing.T, version string, capabilities []string) (err error) {
	t.Helper()
	t.Run(version+" "+strings.Join(capabilities, "+"), func(t *testing.T) {
		within := *s
		within.T = t
		root, failed := os.MkdirTemp(s.export.Path, "confined-") //nolint:usetesting // on the export
		within.must(failed)
		conn := within.controller(capabilities)
		v := newLife(t, conn, "volume", direct, root)
		v.params["nfsvers"] = version
		if err = within.confinedCalls(v, root); err == nil {
			archived := newLife(t, conn, "archived", direct, root)
			archived.params["nfsvers"], archived.params["mountPermissions"], archived.params["onDelete"] = version, "2770",
				"archive"
			err = within.confinedArchive(archived, root)
		}
	})
	return err
}

func (s *site) confinedCalls(v *life, root string) error {
	if err := v.do(s.Context(), "create"); err != nil {
		return err
	}
	s.must(leave(filepath.Join(root, v.name)))
	made, err := v.controllerClient.CreateSnapshot(s.Context(),
		&csi.CreateSnapshotRequest{Name: "snapshot", SourceVolumeId: v.id})
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	id := made.GetSnapshot().GetSnapshotId()
	restored, err := v.controllerClient.CreateVolume(s.Context(), &csi.CreateVolumeRequest{
		Name: "restored", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20},
		VolumeCapabilities: []*csi.VolumeCapability{capability()},
		Parameters:         v.params, VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id},
		}},
	})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := alike(filepath.Join(root, v.name), filepath.Join(root, "restored")); err != nil {
		return fmt.Errorf("the copy: %w", err)
	}
	_, errSnapshot := v.controllerClient.DeleteSnapshot(s.Context(), &csi.DeleteSnapshotRequest{SnapshotId: id})
	_, errRestored := v.controllerClient.DeleteVolume(s.Context(),
		&csi.DeleteVolumeRequest{VolumeId: restored.GetVolume().GetVolumeId()})
	if err := errors.Join(errSnapshot, errRestored, v.do(s.Context(), "delete")); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return emptied(filepath.Join(root, share.HomeName, share.Trash))
}

// confinedArchive takes a volume through its life whose directory is archived under another name.
func (s *site) confinedArchive(v *life, root string) error {
	if err := v.do(s.Context(), "create"); err != nil {
		return err
	}
	s.must(leave(filepath.Join(root, v.name)))
	_, err := v.controllerClient.ControllerExpandVolume(s.Context(), &csi.ControllerExpandVolumeRequest{
		VolumeId: v.id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 20}, VolumeCapability: capability(),
	})
	if err := errors.Join(err, v.do(s.Context(), "delete")); err != nil {
		return fmt.Errorf("expand and archive: %w", err)
	}
	kept, err := filepath.Glob(filepath.Join(root, "archived-archived-*", "closed", "file"))
	if err == nil && len(kept) != 1 {
		err = fmt.Errorf("archived are %q", kept)
	}
	return err
}

// leave fills a volume with all kinds of files that pods may leave: closed files and directories of several users,
// sticky directories, setuid and setgid files, and device nodes.
func leave(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.Mkdir(at("sticky"), 0o700), os.Mkdir(at("closed"), 0o700), os.Mkdir(at("group"), 0o700),
		os.WriteFile(at("sticky/other"), []byte("text"), 0o600), os.WriteFile(at("closed/file"), []byte("text"), 0o600),
		os.WriteFile(at("setuid"), []byte("text"), 0o600), os.Link(at("setuid"), at("setuid too")),
		os.WriteFile(at("list"), []byte("text"), 0o600),
		os.Symlink("nowhere", at("link")), unix.Mkfifo(at("fifo"), 0o600),
		unix.Mknod(at("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))),
	)
	for _, name := range []string{"closed/file", "closed", "sticky", "setuid", "list", "link", "fifo", "device", "group"} {
		err = errors.Join(err, os.Lchown(at(name), userID, groupID))
	}
	return errors.Join(
		err, os.Lchown(at("sticky/other"), userID+1, groupID), unix.Setxattr(at("list"), "user.a", []byte("b"), 0),
		unix.Chmod(at("sticky"), 0o1777), unix.Chmod(at("setuid"), 0o6755), unix.Chmod(at("group"), 0o2770),
		unix.Chmod(at("closed/file"), 0),
		unix.Chmod(at("closed"), 0), os.Lchown(dir, userID, groupID), unix.Chmod(dir, 0o1500),
	)
}

// alike compares owners, modes and devices of two trees.
func alike(one, other string) error {
	return filepath.WalkDir(one, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var a, b unix.Stat_t
		name := strings.TrimPrefix(path, one)
		if err := errors.Join(unix.Lstat(path, &a), unix.Lstat(other+name, &b)); err != nil {
			return err
		}
		if a.Uid != b.Uid || a.Gid != b.Gid || a.Mode != b.Mode || a.Rdev != b.Rdev || a.Nlink != b.Nlink {
			return fmt.Errorf("%q is %d:%d %o, and its copy %d:%d %o", name, a.Uid, a.Gid, a.Mode, b.Uid, b.Gid, b.Mode)
		}
		return nil
	})
}

// emptied waits until deleted files are gone, which happens after the calls.
func emptied(trash string) error {
	for begun := time.Now(); ; <-time.After(100 * time.Millisecond) {
		left, err := os.ReadDir(trash)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Since(begun) > patience {
			return fmt.Errorf("%d files are still in the trash", len(left))
		}
	}
}
