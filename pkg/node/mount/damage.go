package mount

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// advice says what to do if the contents of the device are wrong, or may be; an empty string otherwise.
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

// damaged reports whether the kernel found wrong checksums or inconsistent structures. ext4 and xfs define EFSBADCRC as
// EBADMSG and EFSCORRUPTED as EUCLEAN; btrfs also uses EUCLEAN.
func damaged(err error) bool { return errors.Is(err, unix.EBADMSG) || errors.Is(err, unix.EUCLEAN) }

// checker returns the command that looks for damage and changes nothing.
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

// selinux reports whether SELinux is enabled: only then is its filesystem registered, mounted or not. An unknown state
// counts as enabled, so that the error has only the kernel's own words.
func selinux() bool {
	known, err := os.ReadFile("/proc/filesystems")
	return err != nil || slices.Contains(strings.Fields(string(known)), "selinuxfs")
}
