package freeze

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Use is how an image is used on this node, as far as this mount namespace shows it.
type Use struct {
	// Loops are the device nodes of the loop devices over the image.
	Loops []string
	// Filesystems are those that are mounted from the Loops.
	Filesystems []Filesystem
	// Raw tells whether a loop device has no mount, so that nobody knows who writes to it.
	Raw bool
}

// Filesystem is a filesystem that is mounted at least once.
type Filesystem struct {
	// Device is the device number of the filesystem as in /proc/self/mountinfo.
	Device uint64
	mounts []mount
}

// mount is one place where it is mounted.
type mount struct {
	id   uint64 // as in mountinfo and statx(2), STATX_MNT_ID
	path string
}

// Find looks for loop devices whose backing file is the image itself, and for what is mounted from them. It
// does not find a device that was attached by another name of the image, such as a hard link or a bind mount.
func Find(ctx context.Context, image string) (Use, error) {
	var stat unix.Stat_t
	if err := unix.Stat(image, &stat); err != nil {
		return Use{}, &os.PathError{Op: "stat", Path: image, Err: err}
	}
	loops, err := loopsOver(ctx, image, &stat)
	if err != nil || len(loops) == 0 {
		return Use{}, err
	}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return Use{}, fmt.Errorf("the mounts of this node could not be read: %w", err)
	}
	var use Use
	for _, l := range loops {
		use.Loops = append(use.Loops, l.path)
		found := filesystemsOn(l, mounts)
		use.Filesystems = append(use.Filesystems, found...)
		use.Raw = use.Raw || len(found) == 0
	}
	return use, nil
}

// loop is a loop device that has a backing file.
type loop struct {
	path   string
	device uint64
}

// loopsOver asks only those loop devices for their backing file that may be the image's: the answer comes from
// the filesystem that the file is on, and somebody else's may be a server that does not answer.
func loopsOver(ctx context.Context, image string, stat *unix.Stat_t) ([]loop, error) {
	// filepath.Glob would not do: it takes a directory that cannot be read for an empty one.
	devices, err := os.ReadDir("/sys/block")
	if err != nil {
		return nil, err
	}
	var loops []loop
	for _, entry := range devices {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := entry.Name()
		if !strings.HasPrefix(name, "loop") || !mayBe("/sys/block/"+name+"/loop/backing_file", image) {
			continue
		}
		found, over, err := backedBy("/dev/"+name, stat)
		if err != nil {
			return nil, err
		}
		if over {
			loops = append(loops, found)
		}
	}
	return loops, nil
}

// mayBe tells whether a device's backing file is named as the image is, in a directory of the same name. The
// kernel makes the name of what it knows (d_path), without asking a filesystem, and follows renames; the
// directories above it depend on the mount namespace of who looks.
func mayBe(entry, image string) bool {
	name, err := os.ReadFile(entry)
	if err != nil { // It was detached in between.
		return false
	}
	return lastTwo(strings.TrimSuffix(string(name), "\n")) == lastTwo(image)
}

func lastTwo(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// backedBy asks a loop device for the inode of its backing file (loop(4), LOOP_GET_STATUS64). A device that
// was detached in between is not backed by anything.
func backedBy(path string, image *unix.Stat_t) (loop, bool, error) {
	device, err := os.Open(path)
	if errors.Is(err, unix.ENXIO) {
		return loop{}, false, nil
	}
	if err != nil {
		return loop{}, false, err
	}
	defer closeQuietly(device)
	info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	if errors.Is(err, unix.ENXIO) {
		return loop{}, false, nil
	}
	if err != nil {
		return loop{}, false, &os.PathError{Op: "LOOP_GET_STATUS64", Path: path, Err: err}
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(device.Fd()), &stat); err != nil {
		return loop{}, false, &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	return loop{path: path, device: stat.Rdev}, info.Device == image.Dev && info.Inode == image.Ino, nil
}

// filesystemsOn groups the mounts of a device by filesystem.
func filesystemsOn(l loop, mounts []*mountinfo.Info) []Filesystem {
	var found []Filesystem
	index := map[uint64]int{}
	for _, m := range mounts {
		device := unix.Mkdev(uint32(m.Major), uint32(m.Minor))
		if device != l.device && !mountedFrom(m.Source, l.device) {
			continue
		}
		i, known := index[device]
		if !known {
			i = len(found)
			index[device] = i
			found = append(found, Filesystem{Device: device})
		}
		found[i].mounts = append(found[i].mounts, mount{id: uint64(m.ID), path: m.Mountpoint})
	}
	return found
}

// mountedFrom tells whether a mount's source is the device. It is needed for btrfs, whose device numbers are
// its own.
func mountedFrom(source string, device uint64) bool {
	if !strings.HasPrefix(source, "/dev/") {
		return false
	}
	var stat unix.Stat_t
	return unix.Stat(source, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFBLK && stat.Rdev == device
}

// closeQuietly closes a file that was only read.
func closeQuietly(file *os.File) { _ = file.Close() }
