package trim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Filesystem is a mounted filesystem.
type Filesystem struct {
	Path         string
	Type         string
	Dev, Ino     uint64 // of its root; anything else at the path is left alone
	Major, Minor uint32 // of its device
}

// step is how many bytes are trimmed at once: it bounds how long Pause may have to wait.
const step = 1 << 30

// Mounted trims a filesystem and returns how many bytes it reported to its device as free; ext4 omits those that it
// reported before. It calls answered after each range. At the end of the context it stops between two ranges.
//
// Kinds: Unsupported when the filesystem or its device cannot be trimmed; NotFound when the filesystem is not at
// the path (any more); Denied when it is read-only; Unavailable when the context ended or the device fails.
func Mounted(ctx context.Context, fs Filesystem, answered func()) (trimmed uint64, err error) {
	size, err := sizeOf(fs)
	if err != nil {
		return 0, err
	}
	root, err := open(fs)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }() // open for reading only
	for start := uint64(0); start < size; start += step {
		if err := ctx.Err(); err != nil {
			return trimmed, backends.Errorf(backends.Unavailable, "trimming %q was stopped after %d of %d bytes: %w", fs.Path,
				start, size, err)
		}
		done, err := trimRange(root, start, fs.length(start, size))
		trimmed += done
		answered()
		if errors.Is(err, unix.EINVAL) && start > 0 {
			return trimmed, nil // the filesystem is smaller than its device
		}
		if err != nil {
			return trimmed, backends.Errorf(kindOf(err), "trimming %q from byte %d: %w", fs.Path, start, err)
		}
	}
	return trimmed, nil
}

// length returns how many bytes to trim from the start. The addresses in a btrfs are not those on its device, and
// exceed its size.
func (fs Filesystem) length(start, size uint64) uint64 {
	if fs.Type == "btrfs" && start+step >= size {
		return math.MaxUint64 - start
	}
	return step
}

// trimRange trims a range, and returns how many bytes of it were trimmed (linux/fs.h, struct fstrim_range).
func trimRange(root *os.File, start, length uint64) (trimmed uint64, err error) {
	const fiTrim = 0xc0185879 // _IOWR('X', 121, struct fstrim_range)
	r := struct{ start, length, least uint64 }{start: start, length: length}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, root.Fd(), fiTrim, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return 0, errno
	}
	return r.length, nil
}

// open opens the root of a filesystem if it is the right one.
func open(fs Filesystem) (*os.File, error) {
	fd, err := unix.Open(fs.Path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, backends.Errorf(backends.NotFound, "opening %q to trim it: %w", fs.Path, err)
	}
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "opening %q to trim it: %w", fs.Path, err)
	}
	root := os.NewFile(uintptr(fd), fs.Path)
	var stat unix.Stat_t
	err = unix.Fstat(fd, &stat)
	switch {
	case err != nil:
		err = backends.Errorf(backends.Unavailable, "looking at %q: %w", fs.Path, err)
	case stat.Dev != fs.Dev || stat.Ino != fs.Ino:
		err = backends.Errorf(backends.NotFound, "another filesystem is at %q", fs.Path)
	default:
		return root, nil
	}
	_ = root.Close() // open for reading only
	return nil, err
}

// sizeOf returns the size of the filesystem's device in bytes. It does not open the device, which would keep it in use.
func sizeOf(fs Filesystem) (uint64, error) {
	path := fmt.Sprintf("/sys/dev/block/%d:%d/size", fs.Major, fs.Minor)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, backends.Errorf(backends.Unavailable, "looking for the size of the device of %q: %w", fs.Path, err)
	}
	const sector = 512 // whatever the device's own
	sectors, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 54)
	if err != nil {
		return 0, backends.Errorf(backends.Unavailable, "%s is not a size: %w", path, err)
	}
	return sectors * sector, nil
}

func kindOf(err error) backends.Kind {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOTTY):
		return backends.Unsupported
	case errors.Is(err, unix.EROFS), errors.Is(err, unix.EPERM):
		return backends.Denied
	}
	return backends.Unavailable
}
