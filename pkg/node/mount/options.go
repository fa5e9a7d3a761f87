package mount

import (
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

// attribute returns the flags of an option that belongs to a mount, not to its filesystem (mount_setattr(2)). The flags
// in reset are cleared first, then those in set are set.
func attribute(option string) (set, reset int, ok bool) {
	switch option {
	case "nosuid":
		return unix.MOUNT_ATTR_NOSUID, 0, true
	case "suid":
		return 0, unix.MOUNT_ATTR_NOSUID, true
	case "nodev":
		return unix.MOUNT_ATTR_NODEV, 0, true
	case "dev":
		return 0, unix.MOUNT_ATTR_NODEV, true
	case "noexec":
		return unix.MOUNT_ATTR_NOEXEC, 0, true
	case "exec":
		return 0, unix.MOUNT_ATTR_NOEXEC, true
	case "nosymfollow":
		return unix.MOUNT_ATTR_NOSYMFOLLOW, 0, true
	case "symfollow":
		return 0, unix.MOUNT_ATTR_NOSYMFOLLOW, true
	}
	return accessTime(option)
}

// accessTime is attribute for the options about access times.
func accessTime(option string) (set, reset int, ok bool) {
	switch option {
	case "noatime":
		return unix.MOUNT_ATTR_NOATIME, unix.MOUNT_ATTR__ATIME, true
	case "strictatime":
		return unix.MOUNT_ATTR_STRICTATIME, unix.MOUNT_ATTR__ATIME, true
	case "relatime", "atime", "norelatime", "nostrictatime":
		return unix.MOUNT_ATTR_RELATIME, unix.MOUNT_ATTR__ATIME, true
	case "nodiratime":
		return unix.MOUNT_ATTR_NODIRATIME, 0, true
	case "diratime":
		return 0, unix.MOUNT_ATTR_NODIRATIME, true
	}
	return 0, 0, false
}

// valueOf returns the value in the form that the kernel takes.
func valueOf(option, value string) string {
	if quoted := len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"'; quoted &&
		mountoptions.SecurityLabel(option) {
		return value[1 : len(value)-1]
	}
	return value
}
