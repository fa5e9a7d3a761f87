package ownership

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// entry works on one entry of a directory, and on what is below it.
func (w *walker) entry(ctx context.Context, dir *held, name string, depth int) error {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT); err != nil {
		return os.NewSyscallError("fstatat", err)
	}
	switch {
	case isType(stat, unix.S_IFDIR):
		return w.directory(ctx, dir, name, depth)
	case w.want.met(stat):
		w.entries.Add(1)
		return nil
	}
	fd, err := openBelow(dir, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // an O_PATH descriptor has nothing to write back
	return w.settle(fd)
}

// directory works on a directory, then on what is in it.
func (w *walker) directory(ctx context.Context, dir *held, name string, depth int) error {
	fd, err := openBelow(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	below := hold(os.NewFile(uintptr(fd), name), true)
	if err := w.settle(fd); err != nil {
		below.release()
		return err
	}
	return w.list(ctx, below, depth+1)
}

// openBelow opens an entry of a directory. It follows no symlink and enters no other mount.
func openBelow(dir *held, name string, flags uint64) (int, error) {
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   flags | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV,
	})
	return fd, os.NewSyscallError("openat2", err)
}

// settle makes an open entry as it is wanted. What is changed is what was looked at, whatever has
// become of its name.
func (w *walker) settle(fd int) error {
	w.entries.Add(1)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if w.want.met(stat) {
		return nil
	}
	err := give(fd, stat, w.want)
	switch {
	case refused(err):
		w.denied.Add(1)
		return nil
	case err == nil:
		w.changed.Add(1)
	}
	return err
}

// give sets group and permissions. The permissions come second and always: changing the group takes
// setuid and setgid away from files (chown(2)), which must have them back.
func give(fd int, stat unix.Stat_t, want wanted) error {
	if stat.Gid != want.gid {
		if err := unix.Fchownat(fd, "", -1, int(want.gid), unix.AT_EMPTY_PATH); err != nil {
			return os.NewSyscallError("fchownat", err)
		}
	}
	if isType(stat, unix.S_IFLNK) {
		return nil
	}
	err := unix.Fchmodat(fd, "", want.mode(stat), unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EOPNOTSUPP) {
		// Before Linux 6.6 there is no fchmodat2, and no other way by an O_PATH descriptor.
		err = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), want.mode(stat))
	}
	return os.NewSyscallError("fchmodat2", err)
}

// changedMeanwhile tells whether an error says that an entry went away or became something else since
// its name was read, or that something is mounted there: none is a failure of the walk.
func changedMeanwhile(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV)
}

// refused tells whether an error says that this one entry may not be changed: it is immutable, a file
// server squashes root, the group is over its quota, or the filesystem knows no owners.
func refused(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EOPNOTSUPP)
}
