package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// sysfsDir returns the directory in which the kernel describes the block device of a number (sysfs(5)).
func sysfsDir(major, minor uint32) string { return fmt.Sprintf("/sys/dev/block/%d:%d", major, minor) }

// Gone reports whether the block device of that number certainly does not exist any more.
func Gone(major, minor uint32) bool {
	_, err := os.Stat(sysfsDir(major, minor))
	_, shown := os.Stat(filepath.Dir(sysfsDir(major, minor)))
	return errors.Is(err, fs.ErrNotExist) && shown == nil
}

// nodePath returns the node of the device, by the kernel's name for it, after checking that the node has its number.
// Kinds: Unavailable when it is not (yet) there.
func nodePath(major, minor uint32) (string, error) {
	uevent, err := rawfile.Read(filepath.Join(sysfsDir(major, minor), "uevent"))
	if err != nil {
		return "", backends.Errorf(backends.Unavailable, "the kernel describes no block device %d:%d: %w", major, minor, err)
	}
	name := ""
	for line := range strings.Lines(string(uevent)) {
		if value, ok := strings.CutPrefix(line, "DEVNAME="); ok {
			name = strings.TrimSpace(value)
		}
	}
	path := filepath.Join("/dev", name)
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return "", backends.Errorf(backends.Unavailable, "device %d:%d has no node %s: %w", major, minor, path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK || stat.Rdev != unix.Mkdev(major, minor) {
		return "", backends.Errorf(backends.Unavailable, "%s is not the node of device %d:%d: /dev must be the host's", path,
			major, minor)
	}
	return path, nil
}

// attribute reads one sysfs attribute of a device; ok is false if the device has no such attribute.
func attribute(dir, name string) (value []byte, ok bool, err error) {
	value, err = rawfile.Read(filepath.Join(dir, name))
	switch {
	case err == nil:
		return value, true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EINVAL),
		errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENODEV): // ENODEV: the device went between open and read
		return nil, false, nil
	}
	return nil, false, err
}
