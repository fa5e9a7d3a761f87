package mount

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

// attributes are the effects of mount options on a mount itself, whatever its filesystem (mount_setattr(2)).
type attributes struct{ set, clear int }

// attributesOf reads the attributes from mount options; later options win. Other options belong to the filesystem.
func attributesOf(options []string) (a attributes) {
	for _, option := range options {
		if set, reset, ok := attribute(option); ok {
			a.set, a.clear = a.set&^reset|set, a.clear&^set|reset
		}
	}
	return a
}

// apply sets the attributes of a mount that is not visible yet.
func (a attributes) apply(mount int, readOnly bool) error {
	if readOnly {
		a.set |= unix.MOUNT_ATTR_RDONLY
	}
	if a.set|a.clear == 0 {
		return nil
	}
	attr := unix.MountAttr{Attr_set: uint64(a.set), Attr_clr: uint64(a.clear)}
	return unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &attr)
}

// Lacks returns the last requested option that a mount does not have, among the options of the mount itself. It returns
// an empty string if the mount has them all. Kinds: Unavailable.
func Lacks(path string, options []string) (string, error) {
	a := attributesOf(options)
	if a.set|a.clear == 0 {
		return "", nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return "", backends.Errorf(backends.Unavailable, "looking at the options of the mount at %q: %w", path, err)
	}
	for _, option := range slices.Backward(options) {
		set, reset, ok := attribute(option)
		if !ok || set&^a.set != 0 || set == 0 && reset&a.set != 0 {
			continue // not an option of the mount, or overridden by another one
		}
		if has := shownAttributes(int(fs.Flags)); set&^has != 0 || (reset&^set)&has != 0 {
			return option, nil
		}
	}
	return "", nil
}

// shownAttributes returns the attributes that statfs(2) reports.
func shownAttributes(flags int) int {
	const noSymFollow = 0x2000 // ST_NOSYMFOLLOW
	has := 0
	for flag, attribute := range map[int]int{
		unix.ST_NOSUID: unix.MOUNT_ATTR_NOSUID, unix.ST_NODEV: unix.MOUNT_ATTR_NODEV, unix.ST_NOEXEC: unix.MOUNT_ATTR_NOEXEC,
		unix.ST_NODIRATIME: unix.MOUNT_ATTR_NODIRATIME, noSymFollow: unix.MOUNT_ATTR_NOSYMFOLLOW,
	} {
		if flags&flag != 0 {
			has |= attribute
		}
	}
	switch {
	case flags&unix.ST_NOATIME != 0:
		return has | unix.MOUNT_ATTR_NOATIME
	case flags&unix.ST_RELATIME == 0:
		return has | unix.MOUNT_ATTR_STRICTATIME
	}
	return has
}

// SecurityLabels returns the options that carry an SELinux label, sorted and without quotes, so that equivalent lists
// are equal.
func SecurityLabels(options []string) string {
	var labels []string
	for _, option := range options {
		if name, value, _ := strings.Cut(option, "="); mountoptions.SecurityLabel(option) {
			labels = append(labels, name+"="+valueOf(option, value))
		}
	}
	slices.Sort(labels)
	return strings.Join(slices.Compact(labels), " ")
}
