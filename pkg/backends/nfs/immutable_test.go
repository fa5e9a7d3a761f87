package nfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// immutable makes the server refuse all changes of a file, until the returned function is called.
func (w *world) immutable(path string) (undo func()) {
	w.Helper()
	file, err := os.Open(path)
	w.must(err)
	flags, err := unix.IoctlGetInt(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	w.must(err)
	w.must(unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags|unix.STATX_ATTR_IMMUTABLE))
	return func() {
		w.must(unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags))
		closeQuietly(file)
	}
}

// If the server refuses a deletion, the error says what is refused and what to check, and the volume stays.
func TestDeletionOfWhatIsImmutable(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	undo := w.immutable(w.path(share.HomeName, share.Volumes, w.recordOf(v).ID+suffix))
	err := w.Delete(t.Context(), v.Handle)
	undo()
	w.fails("deleting what is immutable", err, backends.Denied, "its record cannot be moved to the trash", "lsattr",
		"chattr -i")
	w.must(w.Delete(t.Context(), v.Handle))
}
