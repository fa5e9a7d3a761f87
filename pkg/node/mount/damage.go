package mount

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// advice says what to do when it is, or may be, what is on the device that is wrong; nothing otherwise.
func (c *fscontext) advice(err error) string {
	check := checker(c.fs.Type)
	switch {
	case check == "":
		return ""
	case damaged(err):
		return "; the filesystem is damaged: look at it with " + check +
			" and repair it by hand, which may lose data, or restore a snapshot"
	case errors.Is(err, unix.EIO), errors.Is(err, unix.EINVAL):
		return "; if the device is well, the filesystem is damaged: the kernel's log has more, and " + check +
			" looks at it without changing it"
	}
	return ""
}

// damaged reports whether the kernel found checksums or structures that do not fit: ext4 and xfs name EBADMSG
// EFSBADCRC and EUCLEAN EFSCORRUPTED, and btrfs uses EUCLEAN too.
func damaged(err error) bool { return errors.Is(err, unix.EBADMSG) || errors.Is(err, unix.EUCLEAN) }

// checker is the command that looks for damage and changes nothing.
func checker(fsType string) string {
	switch fsType {
	case "ext2", "ext3", "ext4":
		return "e2fsck -n"
	case "xfs":
		return "xfs_repair -n"
	case "btrfs":
		return "btrfs check --readonly"
	}
	return ""
}

// selinux reports whether SELinux is enabled: its filesystem is there only then, mounted or not. What cannot be
// told counts as enabled, for then the kernel's own words are all that is known.
func selinux() bool {
	known, err := os.ReadFile("/proc/filesystems")
	return err != nil || slices.Contains(strings.Fields(string(known)), "selinuxfs")
}
