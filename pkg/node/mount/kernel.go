package mount

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// CheckKernel refuses a kernel that lacks a part of the mount API that is used here. The newest part is the attribute
// of the option nosymfollow, in Linux 5.14. Kinds: Unsupported.
func CheckKernel() error {
	// The kernel checks attributes before the descriptor, which is invalid: nothing is changed.
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSYMFOLLOW}
	return kernelFailure(unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &attr))
}

// kernelFailure interprets the kernel's answer about the attribute.
func kernelFailure(err error) error {
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return nil
	}
	var name unix.Utsname
	_ = unix.Uname(&name) // fails only for a bad address
	return backends.Errorf(backends.Unsupported,
		"the kernel of this node (%s) cannot mount in the ways that are needed: Linux 5.14 or newer is needed, "+
			"and a seccomp profile must not hide mount_setattr(2): %w", unix.ByteSliceToString(name.Release[:]), err)
}
