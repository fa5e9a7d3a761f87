package mount

import (
	"errors"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// State is what a path looks like at one instant.
type State struct {
	Exists   bool
	Mounted  bool // something is mounted at the path itself
	ReadOnly bool // writing fails, because of the mount or of the filesystem
	Dir      bool
	Dev      uint64 // st_dev of the file or directory that shows at the path
	Ino      uint64
	Rdev     uint64 // st_rdev: which device, when it is a device node
	MountID  uint64 // the mount that the path is on
}

// SameRoot tells whether both show the same directory or file of the same filesystem, as a bind mount
// and its source do.
func (s State) SameRoot(o State) bool {
	return s.Exists && o.Exists && s.Dev == o.Dev && s.Ino == o.Ino && s.Rdev == o.Rdev
}

// Inspect looks at a path, following no symlink in its last element and setting off no automount. A
// path that is not there is no error: Exists is false. An error for which Corrupted is true says that a
// mount is there and that its filesystem is gone.
//
// Kinds: Invalid for a path that is not absolute; Unavailable when it cannot be looked at; Unsupported
// on a kernel that does not tell mounts (before Linux 5.8).
func Inspect(path string) (State, error) {
	plain, err := safepath.Absolute(path)
	if err != nil {
		return State{}, err
	}
	x, err := statx(unix.AT_FDCWD, plain, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return State{}, nil
	}
	if err != nil {
		return State{}, backends.Errorf(backends.Unavailable, "looking at %q: %w", plain, err)
	}
	var fs unix.Statfs_t
	if x.Mode&unix.S_IFMT != unix.S_IFLNK { // statfs would follow it
		err = unix.Statfs(plain, &fs)
	}
	return stateOf(plain, x, fs, err)
}

// inspectOpen is Inspect of an open file.
func inspectOpen(fd int, path string) (State, error) {
	x, err := statx(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return State{}, backends.Errorf(backends.Unavailable, "looking at %q: %w", path, err)
	}
	var fs unix.Statfs_t
	err = unix.Fstatfs(fd, &fs)
	return stateOf(path, x, fs, err)
}

func statx(dir int, path string, flags int) (unix.Statx_t, error) {
	var x unix.Statx_t
	err := unix.Statx(dir, path, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &x)
	return x, err
}

// stateOf puts together what statx and statfs said; err is how statfs ended.
func stateOf(path string, x unix.Statx_t, fs unix.Statfs_t, err error) (State, error) {
	if err != nil {
		return State{}, backends.Errorf(backends.Unavailable, "looking at the filesystem of %q: %w", path, err)
	}
	if x.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return State{}, backends.Errorf(backends.Unsupported, "this kernel does not tell whether something is mounted at %q: Linux 5.12 or newer is needed", path)
	}
	return State{
		Exists:   true,
		Mounted:  x.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
		ReadOnly: fs.Flags&unix.ST_RDONLY != 0,
		Dir:      x.Mode&unix.S_IFMT == unix.S_IFDIR,
		Dev:      unix.Mkdev(x.Dev_major, x.Dev_minor),
		Ino:      x.Ino,
		Rdev:     unix.Mkdev(x.Rdev_major, x.Rdev_minor),
		MountID:  x.Mnt_id,
	}, nil
}

// Corrupted tells whether an error says that the filesystem behind a mount is gone (ENOTCONN, ESTALE,
// EIO and the others of mount-utils' IsCorruptedMnt), however deep the error number is wrapped.
func Corrupted(err error) bool {
	errno, ok := errors.AsType[unix.Errno](err)
	return ok && mountutils.IsCorruptedMnt(errno)
}
