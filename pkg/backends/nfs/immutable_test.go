package nfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// A deletion that the server refuses says what is refused and what to look for, and the volume stays.
func TestDeletionOfWhatIsImmutable(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	record, err := os.Open(w.path(share.HomeName, share.Volumes, w.recordOf(v).ID+suffix))
	w.must(err)
	defer closeQuietly(record)
	flags, err := unix.IoctlGetInt(int(record.Fd()), unix.FS_IOC_GETFLAGS)
	w.must(err)
	w.must(unix.IoctlSetPointerInt(int(record.Fd()), unix.FS_IOC_SETFLAGS, flags|unix.STATX_ATTR_IMMUTABLE))
	err = w.Delete(t.Context(), v.Handle)
	w.must(unix.IoctlSetPointerInt(int(record.Fd()), unix.FS_IOC_SETFLAGS, flags))
	w.fails("deleting what is immutable", err, backends.Denied, "its record cannot be moved to the trash", "lsattr",
		"chattr -i")
	w.must(w.Delete(t.Context(), v.Handle))
}
