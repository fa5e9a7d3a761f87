package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
)

// Usage counts bytes or inodes.
type Usage struct {
	Total, Used, Available int64
}

// Filesystem measures the filesystem that holds the path (statfs(2)). Used counts what is not free. Available is what
// an unprivileged process may still use, so the two need not add up to Total. Inodes are all zero if the filesystem
// does not count them.
//
// Kinds: NotFound when the path is not there; Unavailable when the filesystem does not answer, or not before the
// context ends.
func Filesystem(ctx context.Context, path string) (bytes, inodes Usage, err error) {
	found, err := deadline.Do(ctx, measuring(path), func(context.Context) (unix.Statfs_t, error) { return statfs(path) },
		nil)
	if err != nil {
		return Usage{}, Usage{}, failure(path, err)
	}
	block := found.Frsize
	if block == 0 {
		block = found.Bsize
	}
	return usage(found.Blocks, found.Bfree, found.Bavail, block), usage(found.Files, found.Ffree, found.Ffree, 1), nil
}

// usage multiplies counts by a unit. Filesystems with reserved blocks or quotas may report more free than there is, or
// a negative count, which arrives as a huge one: CSI allows neither.
func usage(total, free, available uint64, unit int64) Usage {
	free = min(free, total)
	if int64(available) < 0 {
		available = 0
	}
	return Usage{
		Total:     int64(total) * unit,
		Used:      int64(total-free) * unit,
		Available: int64(min(available, free)) * unit,
	}
}

// Device measures a block device, or a file that a device node is bound to, in bytes.
//
// Kinds: NotFound when the path is not there; Invalid when it is neither device nor file; Unavailable
// when the device does not answer, or not before the context ends.
func Device(ctx context.Context, path string) (sizeBytes int64, err error) {
	return deadline.Do(ctx, measuring(path), func(context.Context) (int64, error) { return sizeOf(path) }, nil)
}

func measuring(path string) deadline.Call {
	return deadline.Call{Name: fmt.Sprintf("measuring %q", path)}
}

func sizeOf(path string) (sizeBytes int64, err error) {
	// O_NONBLOCK: a path that turned into a FIFO must not block the call.
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, failure(path, err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return 0, failure(path, err)
	}
	if kind := info.Mode().Type(); kind != 0 && kind != os.ModeDevice {
		return 0, backends.Errorf(backends.Invalid, "%s is neither a block device nor a file: it is a %s", path, kind)
	}
	// lseek(2) to the end gives the size of a block device too.
	if sizeBytes, err = file.Seek(0, io.SeekEnd); err != nil {
		return 0, failure(path, err)
	}
	return sizeBytes, nil
}

// statfs is statfs(2), retried if a signal interrupts it.
func statfs(path string) (found unix.Statfs_t, err error) {
	for {
		if err = unix.Statfs(path, &found); !errors.Is(err, unix.EINTR) {
			return found, os.NewSyscallError("statfs", err)
		}
	}
}

func failure(path string, err error) error {
	kind := backends.Unavailable
	if errors.Is(err, fs.ErrNotExist) {
		kind = backends.NotFound
	}
	return backends.Errorf(kind, "cannot measure %s: %w", path, err)
}
