package mount

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The kernel gives the ID of an unmounted mount to the next one. That a mount had propagation says nothing about the
// next mount with its ID.
func TestPropagationOfAReusedID(t *testing.T) {
	dir := folder(t, "at") + "/at"
	own := func(propagation uintptr) {
		t.Helper()
		must(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""), unix.Mount("", dir, "", propagation, ""))
	}
	p := &Propagation{}
	for range 20 {
		own(unix.MS_SHARED)
		for range 2 {
			must(t, p.Check(t.Context(), dir))
		}
		if p.knows(look(t, dir).MountID) {
			t.Fatal("the mount is remembered by an ID that the kernel gives to another mount")
		}
		must(t, unix.Unmount(dir, 0))
		own(unix.MS_PRIVATE)
		wantKind(t, p.Check(t.Context(), dir), backends.Unavailable)
		must(t, unix.Unmount(dir, 0))
	}
}
