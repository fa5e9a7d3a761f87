package loops

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// Device is a loop device that holds a file.
type Device struct {
	Path string // its node
	// File is the path of the file as the kernel constructs it (d_path), without asking a filesystem. It follows renames
	// and ends in Deleted if the file has no name any more. The part above the last directories depends on the mount
	// namespace of the reader.
	File string
	// Sequence identifies what the device held when it was asked, as the function Sequence returns it. It is 0 if that is
	// unknown, or the device was not asked.
	Sequence uint64
}

// Deleted is the kernel's suffix for the path of a file that has no name any more.
const Deleted = " (deleted)"

// Attached returns the loop devices that hold a file. It accesses no filesystem but sysfs.
// Kinds: Unavailable when they cannot be listed.
func Attached() ([]Device, error) {
	// filepath.Glob is not sufficient: it treats an unreadable directory as empty, and an image that seems unattached
	// would be attached again.
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

// Shown returns the loop device of a node as shown in sysfs; holds is false if it holds no file. It asks neither the
// device nor the filesystem of its file, and so waits for neither. Kinds: Unavailable when it cannot be read.
func Shown(node string) (d Device, holds bool, err error) {
	file, err := rawfile.Read(filepath.Join("/sys/block", filepath.Base(node), "loop/backing_file"))
	switch {
	case err == nil && len(file) > 0: // It is empty while the device is being freed.
		return Device{Path: node, File: strings.TrimSuffix(string(file), "\n")}, true, nil
	case err == nil || holdsNothing(err):
		return Device{}, false, nil
	}
	return Device{}, false, failure.Errorf(failure.Unavailable, "looking at loop device %s: %w", node, err)
}

// Sequence returns the number that the kernel gave to what a loop device holds, as sysfs shows it. Until the machine
// reboots, no other disk, and no other file of a loop device, has that number. It is 0 if the kernel is too old (before
// Linux 5.15), or there is no such device. Kinds: Unavailable.
func Sequence(node string) (uint64, error) {
	text, err := rawfile.Read(filepath.Join("/sys/block", filepath.Base(node), "diskseq"))
	if holdsNothing(err) {
		return 0, nil
	}
	var sequence uint64
	if err == nil {
		sequence, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil {
		return 0, failure.Errorf(failure.Unavailable, "looking at the sequence number of %s: %w", node, err)
	}
	return sequence, nil
}

// Named reports whether the device's file has the same name as path, in a directory of the same name. Then it may be
// the file at the path, even if another mount namespace or a link shows it elsewhere.
func (d Device) Named(path string) bool { return lastTwo(d.File) == lastTwo(path) }

// lastTwo returns the end of a path: a file and its directory.
func lastTwo(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// holdsNothing reports whether reading the file's name failed because there is none, or the device went between open
// and read.
func holdsNothing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) ||
		errors.Is(err, unix.EINVAL)
}

// inode identifies a file.
type inode struct{ dev, ino uint64 }

// answer is the answer of a device: its file, and the sequence number that it has with that. ok is false if it holds no
// file any more.
type answer struct {
	file     inode
	sequence uint64
	ok       bool
}

// held asks the device which file it holds. The sequence number is that of the file: while the device is open, it gets
// no other.
func (d Device) held() (answer, error) {
	fd, err := unix.Open(d.Path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENXIO) {
		return answer{}, nil
	}
	if err != nil {
		return answer{}, failure.Errorf(failure.Unavailable, "opening %s: %w", d.Path, err)
	}
	defer func() { _ = unix.Close(fd) }() // only inspected
	info, err := unix.IoctlLoopGetStatus64(fd)
	if errors.Is(err, unix.ENXIO) {
		return answer{}, nil
	}
	if err != nil {
		return answer{}, failure.Errorf(failure.Unavailable, "asking %s what it holds: %w", d.Path, err)
	}
	sequence, err := Sequence(d.Path)
	return answer{inode{info.Device, info.Inode}, sequence, true}, err
}
