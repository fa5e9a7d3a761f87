package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// located is a file that was found but not opened yet: opening a device, a FIFO or a tape has effects, so its type must
// be known first.
type located struct {
	*os.File // O_PATH
	stat     unix.Stat_t
}

// locate finds the file at a path. With O_NOFOLLOW among the flags it finds a symlink itself.
func locate(path string, flags int) (*located, error) {
	plain, err := safepath.Absolute(path)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(plain, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, backends.Errorf(locateKind(err), "looking for %q: %w", plain, err)
	}
	l := &located{File: os.NewFile(uintptr(fd), plain)}
	if err := unix.Fstat(fd, &l.stat); err != nil {
		_ = l.Close() // O_PATH
		return nil, backends.Errorf(backends.Unavailable, "looking at %q: %w", plain, err)
	}
	return l, nil
}

func locateKind(err error) backends.Kind {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return backends.NotFound
	case errors.Is(err, unix.ELOOP):
		return backends.Invalid
	}
	return backends.Unavailable
}

// kind returns the file type, one of the S_IF constants.
func (l *located) kind() uint32 { return l.stat.Mode & unix.S_IFMT }

// reopen opens the file that was found, for reading and, unless readOnly, for writing.
func (l *located) reopen(readOnly bool) (*os.File, error) {
	flags := os.O_RDWR
	if readOnly {
		flags = os.O_RDONLY
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", l.Fd()), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: l.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), l.Name()), nil
}

// blockSize returns the size of a block device in bytes.
func blockSize(f *os.File) (int64, error) {
	var size uint64
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.BLKGETSIZE64, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0, backends.Errorf(backends.Unavailable, "asking %q for its size: %w", f.Name(), errno)
	}
	return int64(size), nil
}
