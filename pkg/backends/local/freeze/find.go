package freeze

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/loops"
)

// Use describes how an image is used on this node, as far as this mount namespace shows it.
type Use struct {
	// Loops are the device nodes of the loop devices on the image.
	Loops []string
	// Filesystems are the filesystems that are mounted from the Loops.
	Filesystems []Filesystem
	// Raw reports whether a loop device has no mount, so that its writers are unknown.
	Raw bool
}

// Filesystem is a filesystem that is mounted at least once.
type Filesystem struct {
	// Device is the device number of the filesystem as in /proc/self/mountinfo.
	Device uint64
	mounts []mount
	on     loop
}

// mount is one mount of a filesystem.
type mount struct {
	id   uint64 // as in mountinfo and statx(2), STATX_MNT_ID
	path string
}

// Find finds the loop devices that hold the image, even under another name such as a hard link, and the filesystems
// mounted from them. It fails if a loop device does not report its backing file and that may be the image: a copy of an
// image that is being written to would be torn.
func Find(ctx context.Context, image string) (Use, error) {
	found, err := loopsOver(ctx, image)
	if err != nil || len(found) == 0 {
		return Use{}, err
	}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return Use{}, fmt.Errorf("the mounts of this node could not be read: %w", err)
	}
	return useOf(found, mounts), nil
}

// useOf combines the loop devices that hold an image with the mounts, which were read later. A device may hold another
// image by then: Filesystem.open checks that.
func useOf(found []loop, mounts []*mountinfo.Info) (use Use) {
	for _, l := range found {
		use.Loops = append(use.Loops, l.path)
		found := filesystemsOn(l, mounts)
		use.Filesystems = append(use.Filesystems, found...)
		use.Raw = use.Raw || len(found) == 0
	}
	return use
}

// loop is a loop device that has a backing file.
type loop struct {
	path     string
	device   uint64
	sequence uint64 // loops.Device.Sequence
}

// check fails if the device holds another file than when it was found. Kinds: Unavailable.
func (l loop) check() error {
	if l.sequence == 0 {
		return nil // unknown
	}
	now, err := loops.Sequence(l.path)
	if err == nil && now != l.sequence {
		err = failure.Errorf(failure.Unavailable, "%s no longer holds the image that it held when it was found: look again",
			l.path)
	}
	return err
}

// loopsOver finds the loop devices that hold the image.
func loopsOver(ctx context.Context, image string) ([]loop, error) {
	call := deadline.Call{Name: fmt.Sprintf("looking for the loop devices of %q", image)}
	return deadline.Do(ctx, call, func(ctx context.Context) ([]loop, error) {
		file, err := os.OpenFile(image, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		defer closeQuietly(file)
		found, err := loops.Holding(ctx, int(file.Fd()), image)
		if err != nil {
			return nil, err
		}
		return numbered(found)
	}, nil)
}

// numbered adds the devices' numbers.
func numbered(devices []loops.Device) ([]loop, error) {
	var numbered []loop
	for _, d := range devices {
		var stat unix.Stat_t
		if err := unix.Stat(d.Path, &stat); err != nil {
			return nil, &os.PathError{Op: "stat", Path: d.Path, Err: err}
		}
		numbered = append(numbered, loop{path: d.Path, device: stat.Rdev, sequence: d.Sequence})
	}
	return numbered, nil
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
			found = append(found, Filesystem{Device: device, on: l})
		}
		found[i].mounts = append(found[i].mounts, mount{id: uint64(m.ID), path: m.Mountpoint})
	}
	return found
}

// mountedFrom reports whether a mount's source is the device. It is needed for btrfs, which has its own device numbers.
func mountedFrom(source string, device uint64) bool {
	if !strings.HasPrefix(source, "/dev/") {
		return false
	}
	var stat unix.Stat_t
	return unix.Stat(source, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFBLK && stat.Rdev == device
}

// closeQuietly closes a file that was only read.
func closeQuietly(file *os.File) { _ = file.Close() }
