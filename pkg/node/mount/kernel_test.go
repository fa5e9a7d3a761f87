package mount

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// A kernel before Linux 5.12 lacks mount_setattr(2), one before 5.14 does not know the attribute, and a newer one
// checks the descriptor next. This kernel is new enough.
func TestCheckKernel(t *testing.T) {
	for err, old := range map[unix.Errno]bool{unix.ENOSYS: true, unix.EINVAL: true, unix.EBADF: false, unix.EPERM: false} {
		if got := kernelFailure(err); backends.Is(got, backends.Unsupported) != old {
			t.Errorf("%v is understood as %v, want a refusal: %t", err, got, old)
		}
	}
	if err := CheckKernel(); err != nil {
		t.Error(err)
	}
	if unix.Geteuid() != 0 {
		t.Skip("NOT RUN: asking for an attribute that no kernel has needs root")
	}
	attr := unix.MountAttr{Attr_set: 1 << 40}
	if err := kernelFailure(unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH,
		&attr)); !backends.Is(err, backends.Unsupported) {
		t.Errorf("an attribute that this kernel does not know is understood as %v", err)
	}
}
