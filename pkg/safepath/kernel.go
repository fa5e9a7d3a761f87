package safepath

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// openAttempts bounds the retries of an openat2 that lost a race against renames (openat2(2), EAGAIN).
const openAttempts = 32

func openat2(dir int, name string, flags, resolve uint64) (int, error) {
	return openat2Mode(dir, name, flags, 0, resolve)
}

func openat2Mode(dir int, name string, flags, mode, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode, Resolve: resolve}
	for attempt := 1; ; attempt++ {
		fd, err := unix.Openat2(dir, name, &how)
		again := errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN)
		if !again || attempt == openAttempts {
			return fd, err
		}
	}
}

// kindOf maps the errors of system calls on paths.
func kindOf(err error) failure.Kind {
	errno, _ := errors.AsType[unix.Errno](err)
	switch errno {
	case unix.ENOENT:
		return failure.NotFound
	case unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG, unix.EINVAL:
		return failure.Invalid
	case unix.EBUSY, unix.ENOTEMPTY, unix.EEXIST:
		return failure.InUse
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return failure.Denied
	case unix.ENOSPC, unix.EDQUOT:
		return failure.Exhausted
	case unix.EAGAIN, unix.EIO, unix.ENOTCONN, unix.ESTALE, unix.EHOSTDOWN:
		return failure.Unavailable
	}
	return failure.Unknown
}

func isDirectory(stat unix.Statx_t) bool { return stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// isFile accepts a device node only as a mount point: the file below it is then hidden.
func isFile(stat unix.Statx_t) bool {
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return true
	case unix.S_IFBLK:
		return stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	return false
}

func typeName(mode uint16) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFREG:
		return "a file"
	case unix.S_IFLNK:
		return "a symlink"
	case unix.S_IFBLK:
		return "a block device"
	case unix.S_IFCHR:
		return "a character device"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "of an unknown type"
}
