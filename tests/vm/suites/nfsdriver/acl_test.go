package nfsdriver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

// TestCopiesKeepAccessLists restores a snapshot with files that an access control list closes to their group, although
// the group bits of their modes are set: those are the list's mask. Without the list, the group would have access.
func TestCopiesKeepAccessLists(t *testing.T) {
	s := newSite(t, nfsd.Config{Versions: []string{"3", "4.0", "4.1", "4.2"}})
	for _, version := range []string{"3", "4.0", "4.1", "4.2"} {
		t.Run(version, func(t *testing.T) {
			within := *s
			within.T = t
			within.keepsLists(version)
		})
	}
}

func (s *site) keepsLists(version string) {
	driver := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	controller := csi.NewControllerClient(driver.Conn)
	source := newLife(s.T, driver.Conn, "lists-"+version, direct, s.export.Path)
	source.params["nfsvers"] = version
	s.must(source.patiently(s.Context(), "create"))
	dir := filepath.Join(s.export.Path, source.name)
	s.listed(dir)
	s.must(os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644))
	made, err := taken(s.Context(), controller, &csi.CreateSnapshotRequest{Name: source.name, SourceVolumeId: source.id})
	s.must(err)
	request := &csi.CreateVolumeRequest{
		Name: source.name + "-restored", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20},
		VolumeCapabilities: []*csi.VolumeCapability{capability()},
		Parameters:         source.params,
		VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: made.GetSnapshot().GetSnapshotId()},
		}},
	}
	_, err = answered(s.Context(), func(ctx context.Context) (*csi.CreateVolumeResponse, error) {
		return controller.CreateVolume(ctx, request)
	})
	s.must(err)
	for _, name := range []string{"closed", "plain", "dir", "dir/inside", "fifo"} {
		for _, list := range []string{accessList, defaultList} {
			s.sameList(filepath.Join(dir, name), filepath.Join(s.export.Path, request.GetName(), name), list)
		}
	}
	file, err := os.Open(filepath.Join(s.export.Path, request.GetName(), "closed"))
	s.must(err)
	defer file.Close()
	s.can("the group that the list keeps out reads the copy", false, as(userID, groupID, nil, func() error {
		again, err := os.Open(file.Name())
		if err == nil {
			err = again.Close()
		}
		return err
	}))
}

// listed creates files in a directory, some of which have access control lists.
func (s *site) listed(dir string) {
	s.Helper()
	const user = 1001
	for _, name := range []string{"closed", "plain", "dir/inside"} {
		s.must(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		s.must(os.WriteFile(filepath.Join(dir, name), []byte(name), 0o640))
		s.must(os.Chown(filepath.Join(dir, name), 0, groupID))
	}
	s.must(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	closed := accessControl(6, user, 6, 0, 6, 0) // The group has no rights; the mask, and so the mode, has 6.
	for _, name := range []string{"closed", "dir/inside", "fifo"} {
		s.must(unix.Setxattr(filepath.Join(dir, name), accessList, closed, 0))
	}
	s.must(unix.Setxattr(filepath.Join(dir, "dir"), accessList, accessControl(7, user, 5, 0, 5, 0), 0))
	s.must(unix.Setxattr(filepath.Join(dir, "dir"), defaultList, accessControl(7, user, 7, 1, 7, 0), 0))
}

// accessControl returns a list in the kernel's format (linux/posix_acl_xattr.h).
func accessControl(owner uint16, user uint32, ofUser, group, mask, other uint16) []byte {
	const none = ^uint32(0)
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range []struct {
		tag, perm uint16
		id        uint32
	}{{0x01, owner, none}, {0x02, ofUser, user}, {0x04, group, none}, {0x10, mask, none}, {0x20, other, none}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.perm)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	return list
}

// sameList compares the lists of two files in the server's own filesystem.
func (s *site) sameList(want, have string, name string) {
	s.Helper()
	if a, b := s.list(want, name), s.list(have, name); !bytes.Equal(a, b) {
		s.Errorf("%s of %s is %x, want %x as of %s", name, have, b, a, want)
	}
}

// list returns an access control list, or nil if there is none.
func (s *site) list(path, name string) []byte {
	s.Helper()
	value := make([]byte, 1024)
	n, err := unix.Getxattr(path, name, value)
	if err != nil && !errors.Is(err, unix.ENODATA) {
		s.Fatal(path, name, err)
	}
	return value[:max(n, 0)]
}
