package ownership

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// entry processes one entry of a directory and everything below it.
func (w *walker) entry(ctx context.Context, dir *held, name string, depth int) error {
	stat, err := inspect(dir, name)
	if err != nil {
		return err
	}
	if isType(stat, unix.S_IFDIR) {
		return w.directory(ctx, dir, name, depth)
	}
	return w.leaf(dir, name, stat)
}

// leaf processes an entry that is not a directory.
func (w *walker) leaf(dir *held, name string, stat unix.Stat_t) error {
	switch {
	case w.want.met(stat):
		w.right.Add(1)
		return nil
	case w.exclusive:
		err := give(int(dir.Fd()), name, unix.AT_SYMLINK_NOFOLLOW, stat, w.want)
		if !errors.Is(err, unix.EOPNOTSUPP) {
			return w.count(err)
		}
		// The new group may have cleared setuid and setgid by now: the earlier permissions say what is wanted.
		return w.reached(dir, name, &stat)
	}
	return w.reached(dir, name, nil)
}

// inspect returns the state of an entry by its name. A mount is not part of the volume: EXDEV.
func inspect(dir *held, name string) (unix.Stat_t, error) {
	var found unix.Statx_t
	const flags, mask = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_GID
	err := unix.Statx(int(dir.Fd()), name, flags, mask, &found)
	if err == nil && found.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		err = unix.EXDEV
	}
	return unix.Stat_t{Mode: uint32(found.Mode), Gid: found.Gid}, os.NewSyscallError("statx", err)
}

// reached processes an entry that is not a directory, by a descriptor. before is its earlier state, if that must be
// used instead of its current one.
func (w *walker) reached(dir *held, name string, before *unix.Stat_t) error {
	fd, err := openBelow(dir, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // an O_PATH descriptor has nothing to write back
	if before != nil {
		return w.change(fd, *before)
	}
	return w.settle(fd)
}

// directory processes a directory, then its entries.
func (w *walker) directory(ctx context.Context, dir *held, name string, depth int) error {
	below, err := w.open(dir, name)
	if err != nil {
		return err
	}
	return w.list(ctx, below, depth+1)
}

// open opens a directory and processes it.
func (w *walker) open(dir *held, name string) (*held, error) {
	fd, err := openBelow(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	below := hold(os.NewFile(uintptr(fd), name), true)
	if err := w.settle(fd); err != nil {
		below.release()
		return nil, err
	}
	return below, nil
}

// openBelow opens an entry of a directory. It follows no symlink and enters no other mount.
func openBelow(dir *held, name string, flags uint64) (int, error) {
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   flags | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV,
	})
	return fd, os.NewSyscallError("openat2", err)
}

// settle processes an open entry. It changes the file that it inspected, whatever has become of its name.
func (w *walker) settle(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if w.want.met(stat) {
		w.right.Add(1)
		return nil
	}
	return w.change(fd, stat)
}

// change gives an open entry, which was not as wanted, the wanted group and permissions.
func (w *walker) change(fd int, stat unix.Stat_t) error {
	err := give(fd, "", unix.AT_EMPTY_PATH, stat, w.want)
	if errors.Is(err, unix.EOPNOTSUPP) {
		// Before Linux 6.6 fchmodat2 does not exist, and an O_PATH descriptor leaves no other way.
		err = os.NewSyscallError("chmod", unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), w.want.mode(stat)))
	}
	return w.count(err)
}

// count counts the outcome for an entry that was not as wanted. An entry that may not be changed is no failure.
func (w *walker) count(err error) error {
	switch {
	case refused(err) || w.isBtrfs && errors.Is(err, unix.EROFS): // It is in a read-only snapshot.
		w.denied.Add(1)
		return nil
	case err == nil:
		w.changed.Add(1)
	}
	return err
}

// give sets the group and the permissions of a name or, with AT_EMPTY_PATH, of a descriptor. The permissions come
// second: changing the group clears setuid and setgid of files (chown(2)), which must be restored.
func give(at int, name string, flag int, stat unix.Stat_t, want wanted) error {
	mode := want.mode(stat)
	due := mode != stat.Mode&everything
	if stat.Gid != want.gid {
		if err := unix.Fchownat(at, name, -1, int(want.gid), flag); err != nil {
			return os.NewSyscallError("fchownat", err)
		}
		due = due || mode&(unix.S_ISUID|unix.S_ISGID) != 0
	}
	if !due || isType(stat, unix.S_IFLNK) {
		return nil
	}
	return os.NewSyscallError("fchmodat2", unix.Fchmodat(at, name, mode, flag))
}

// changedMeanwhile reports whether an error says that an entry was removed or replaced since its name was read, or that
// something is mounted there. None of these is a failure of the walk.
func changedMeanwhile(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.EXDEV)
}

// refused reports whether an error says that this one entry may not be changed: it is immutable, a file server squashes
// root, the group is over its quota, or the filesystem does not support owners.
func refused(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EDQUOT) ||
		errors.Is(err, unix.EOPNOTSUPP)
}
