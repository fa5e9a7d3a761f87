package loops

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// Device is a loop device that holds a file.
type Device struct {
	Path string // its node
	// File is the path of the file as the kernel makes it up of what it knows (d_path), without asking a
	// filesystem. It follows renames and ends in Deleted when the file has no name any more. What is above
	// the last directories depends on the mount namespace of who looks.
	File string
}

// Deleted is what the kernel puts after the path of a file that has no name any more.
const Deleted = " (deleted)"

// Attached lists the loop devices that hold a file. It asks no filesystem but sysfs.
// Kinds: Unavailable when they cannot be listed.
func Attached() ([]Device, error) {
	// filepath.Glob would not do: it takes a directory that cannot be read for an empty one, and an image that
	// seems to be attached to nothing is attached once more.
	entries, err := os.ReadDir("/sys/block")
	if err != nil {
		return nil, failure.Errorf(failure.Unavailable, "listing loop devices: %w", err)
	}
	var devices []Device
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "loop") {
			continue
		}
		d, holds, err := Shown("/dev/" + entry.Name())
		if err != nil {
			return nil, err
		}
		if holds {
			devices = append(devices, d)
		}
	}
	return devices, nil
}

// Shown returns the loop device of a node as sysfs shows it; holds is false where it holds no file. It asks neither the
// device nor the filesystem of its file, and so waits for none. Kinds: Unavailable when it cannot be read.
func Shown(node string) (d Device, holds bool, err error) {
	file, err := rawfile.Read(filepath.Join("/sys/block", filepath.Base(node), "loop/backing_file"))
	switch {
	case err == nil && len(file) > 0: // It is empty while the device is being freed.
		return Device{node, strings.TrimSuffix(string(file), "\n")}, true, nil
	case err == nil || holdsNothing(err):
		return Device{}, false, nil
	}
	return Device{}, false, failure.Errorf(failure.Unavailable, "looking at loop device %s: %w", node, err)
}

// Named reports whether the file of the device has the name that path has, in a directory of the same name: then it
// may be the file at the path, also where another mount namespace or a link shows it elsewhere.
func (d Device) Named(path string) bool { return lastTwo(d.File) == lastTwo(path) }

// lastTwo is the end of a path: a file and its directory.
func lastTwo(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// holdsNothing reports whether reading the file's name failed because there is none, or the device went
// between open and read.
func holdsNothing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) ||
		errors.Is(err, unix.EINVAL)
}

// inode is what tells a file from all others.
type inode struct{ dev, ino uint64 }

// held asks the device which file it holds; ok is false when it holds none any more.
func (d Device) held() (file inode, ok bool, err error) {
	fd, err := unix.Open(d.Path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENXIO) {
		return inode{}, false, nil
	}
	if err != nil {
		return inode{}, false, failure.Errorf(failure.Unavailable, "opening %s: %w", d.Path, err)
	}
	defer func() { _ = unix.Close(fd) }() // only looked at
	info, err := unix.IoctlLoopGetStatus64(fd)
	switch {
	case err == nil:
		return inode{info.Device, info.Inode}, true, nil
	case errors.Is(err, unix.ENXIO):
		return inode{}, false, nil
	}
	return inode{}, false, failure.Errorf(failure.Unavailable, "asking %s what it holds: %w", d.Path, err)
}
