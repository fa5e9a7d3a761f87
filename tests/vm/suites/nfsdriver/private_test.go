package nfsdriver

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// TestPrivateMountsLeadNowhere checks the flags of the controller's own mount of a share, whatever the share contains:
// the kernel follows no link on it, opens no device, and runs no program.
func TestPrivateMountsLeadNowhere(t *testing.T) {
	s := newSite(t, nfsd.Config{})
	driver := inprocess.Start(t, inprocess.Options{Backend: "nfs"})
	v := newLife(t, driver.Conn, "private", direct, s.export.Path)
	s.must(v.patiently(t.Context(), "create"))
	open, err := os.ReadDir("/proc/self/fd")
	s.must(err)
	found := 0
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		s.must(err)
		var fs unix.Statfs_t
		if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.NFS_SUPER_MAGIC { // The directory that was read is closed.
			continue
		}
		found++
		const followsNoLink = 0x2000 // ST_NOSYMFOLLOW of the kernel, which package unix lacks.
		const want = followsNoLink | unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC
		if fs.Flags&want != want {
			t.Errorf("descriptor %d is on a mount with the flags %#x, want %#x", fd, fs.Flags, want)
		}
	}
	if found == 0 {
		t.Error("the controller has nothing open on the share")
	}
	s.must(v.patiently(t.Context(), "delete"))
}
