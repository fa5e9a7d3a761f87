package mount

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// State is the state of a path at one instant.
type State struct {
	Exists   bool
	Mounted  bool // something is mounted at the path itself
	ReadOnly bool // writing fails, because of the mount or of the filesystem
	Dir      bool
	Dev      uint64 // st_dev of the file or directory that shows at the path
	Ino      uint64
	Rdev     uint64 // st_rdev: which device, when it is a device node
	MountID  uint64 // the mount that the path is on
	// Deleted says that the file at the path has no name any more. The kernel deletes the node of a device that is taken
	// away. A bind mount of the node stays, and leads to whatever device has its number by then.
	Deleted bool

	link bool
}

// SameRoot reports whether both are the same directory or file of the same filesystem, as a bind mount and its source
// are.
func (s State) SameRoot(o State) bool {
	return s.Exists && o.Exists && s.Dev == o.Dev && s.Ino == o.Ino && s.Rdev == o.Rdev
}

// Inspect returns the state of a path. It follows no symlink in the last element and triggers no automount. A missing
// path is no error: Exists is false. An error for which Corrupted is true means that a mount is there and that its
// filesystem is gone. If the server of a filesystem does not answer, Inspect gives up at the end of the context.
//
// Kinds: Invalid for a path that is not absolute; Unavailable when it cannot be looked at; Unsupported
// on a kernel that does not tell mounts (before Linux 5.8).
func Inspect(ctx context.Context, path string) (State, error) {
	call := deadline.Call{Name: fmt.Sprintf("looking at %q", path)}
	return deadline.Do(ctx, call, func(context.Context) (State, error) { return inspect(path) }, nil)
}

// Mounted reports whether something is mounted at a path. For a filesystem that was inspected before, the kernel knows
// that without asking it, so a server that does not answer does not delay the call. Kinds: as Inspect.
func Mounted(ctx context.Context, path string) (bool, error) {
	call := deadline.Call{Name: fmt.Sprintf("looking for a mount at %q", path)}
	state, err := deadline.Do(ctx, call,
		func(context.Context) (State, error) { return glance(path, unix.AT_STATX_DONT_SYNC) }, nil)
	return state.Mounted, err
}

func inspect(path string) (State, error) {
	state, err := glance(path, 0)
	if err != nil || !state.Exists || state.link {
		return state, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return State{}, backends.Errorf(backends.Unavailable, "looking at the filesystem of %q: %w", path, err)
	}
	state.ReadOnly = fs.Flags&unix.ST_RDONLY != 0
	return state, nil
}

// glance is inspect without ReadOnly, which only the filesystem can tell. With AT_STATX_DONT_SYNC among the flags, a
// filesystem whose server is dead is not asked if it has cached attributes. Then everything but what the kernel itself
// knows, such as Mounted, may be out of date.
func glance(path string, flags int) (State, error) {
	plain, err := safepath.Absolute(path)
	if err != nil {
		return State{}, err
	}
	x, err := statx(unix.AT_FDCWD, plain, unix.AT_SYMLINK_NOFOLLOW|flags)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return State{}, nil
	}
	if err != nil {
		return State{}, backends.Errorf(backends.Unavailable, "looking at %q: %w", plain, err)
	}
	return stateOf(plain, x)
}

// glanceOpen is glance for an open file.
func glanceOpen(fd int, path string, flags int) (State, error) {
	x, err := statx(fd, "", unix.AT_EMPTY_PATH|flags)
	if err != nil {
		return State{}, backends.Errorf(backends.Unavailable, "looking at %q: %w", path, err)
	}
	return stateOf(path, x)
}

func statx(dir int, path string, flags int) (unix.Statx_t, error) {
	var x unix.Statx_t
	err := unix.Statx(dir, path, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &x)
	return x, err
}

// stateOf converts the result of statx.
func stateOf(path string, x unix.Statx_t) (State, error) {
	if x.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return State{}, backends.Errorf(backends.Unsupported,
			"this kernel does not tell whether something is mounted at %q: Linux 5.14 or newer is needed", path)
	}
	return State{
		Exists:  true,
		Mounted: x.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
		Dir:     x.Mode&unix.S_IFMT == unix.S_IFDIR,
		Dev:     unix.Mkdev(x.Dev_major, x.Dev_minor),
		Ino:     x.Ino,
		Rdev:    unix.Mkdev(x.Rdev_major, x.Rdev_minor),
		MountID: x.Mnt_id,
		Deleted: x.Nlink == 0,
		link:    x.Mode&unix.S_IFMT == unix.S_IFLNK, // statfs would follow it
	}, nil
}

// Corrupted reports whether an error says that the filesystem behind a mount is gone (ENOTCONN, ESTALE,
// EIO and the others of mount-utils' IsCorruptedMnt), however deep the error number is wrapped.
func Corrupted(err error) bool {
	errno, ok := errors.AsType[unix.Errno](err)
	return ok && mountutils.IsCorruptedMnt(errno)
}
