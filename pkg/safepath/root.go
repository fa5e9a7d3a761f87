package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Root is an open directory that gives access to everything below it by relative paths. Unlike os.Root it follows no
// symlink at all, not even one that stays inside, and enters no other filesystem. A process that can write there can
// remove a name, but not redirect it.
//
// Its errors wrap the kernel's, and have no Kind, except Unavailable for a directory on the way that is a symlink or on
// another filesystem. An error for a missing entry does not have the Kind NotFound.
type Root struct{ dir *os.File }

// NewRoot returns the root over an open directory, which still belongs to the caller.
func NewRoot(dir *os.File) Root { return Root{dir} }

// within calls do with the last element of a path and its open directory.
func (r Root) within(op, name string, do func(dir int, base string) error) error {
	parent, err := r.folder(op, path.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(parent) }() // O_PATH
	if err := do(parent, path.Base(name)); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// folder opens a directory only to reach entries in it: it need not be readable.
func (r Root) folder(op, name string) (int, error) {
	return r.open(op, name, unix.O_PATH|unix.O_DIRECTORY, 0)
}

func (r Root) open(op, name string, flags, mode uint64) (int, error) {
	if err := Relative(name); err != nil && name != "." {
		return -1, err
	}
	const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV
	fd, err := openat2Mode(int(r.dir.Fd()), name, flags, mode, resolve)
	switch {
	case errors.Is(err, unix.ELOOP):
		return -1, failure.Errorf(failure.Unavailable, "%q leads over a symlink: it is not followed; remove the link", name)
	case errors.Is(err, unix.EXDEV):
		return -1, failure.Errorf(failure.Unavailable, "%q leads to another filesystem: it is not followed", name)
	case err != nil:
		return -1, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return fd, nil
}

// Folder opens a directory, for reading its names and for tree.RemoveIn.
func (r Root) Folder(name string) (*os.File, error) {
	return r.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// OpenFile is os.Root.OpenFile.
func (r Root) OpenFile(name string, flags int, mode fs.FileMode) (*os.File, error) {
	fd, err := r.open("open", name, uint64(flags), uint64(mode.Perm()))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Mkdir is os.Root.Mkdir.
func (r Root) Mkdir(name string, mode fs.FileMode) error {
	return r.within("mkdir", name,
		func(dir int, base string) error { return unix.Mkdirat(dir, base, uint32(mode.Perm())) })
}

// Chmod is os.Root.Chmod for a directory.
func (r Root) Chmod(name string, mode fs.FileMode) error {
	fd, err := r.folder("chmod", name) // The owner may have no read permission.
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // O_PATH
	return chmodOpen(fd, mode)
}

// ChmodInode is Chmod for the directory with the inode number. It leaves another one that has the name as it is.
func (r Root) ChmodInode(name string, inode uint64, mode fs.FileMode) error {
	fd, err := r.folder("chmod", name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // O_PATH
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if stat.Ino != inode {
		return nil
	}
	return chmodOpen(fd, mode)
}

// chmodOpen is fchmod for a descriptor with O_PATH.
func chmodOpen(fd int, mode fs.FileMode) error {
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
}

// Remove is os.Root.Remove.
func (r Root) Remove(name string) error {
	return r.within("remove", name, func(dir int, base string) error {
		err := unix.Unlinkat(dir, base, 0)
		if errors.Is(err, unix.EISDIR) {
			err = unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// Link is os.Root.Link.
func (r Root) Link(name, target string) error {
	return r.both("link", name, r, target, func(from int, name string, to int, target string) error {
		return unix.Linkat(from, name, to, target, 0)
	})
}

// Rename is os.Root.Rename.
func (r Root) Rename(name, target string) error { return r.RenameTo(name, r, target) }

// RenameTo is Rename to a path below another root.
func (r Root) RenameTo(name string, to Root, target string) error {
	return r.both("rename", name, to, target, unix.Renameat)
}

func (r Root) both(op, name string, to Root, target string,
	do func(from int, name string, to int, target string) error) error {
	err := r.within(op, name, func(from int, base string) error {
		return to.within(op, target, func(dir int, end string) error { return do(from, base, dir, end) })
	})
	_, kinded := errors.AsType[*failure.Error](err)
	if cause, ok := errors.AsType[unix.Errno](err); ok && !kinded {
		return &os.LinkError{Op: op, Old: name, New: target, Err: cause}
	}
	return err
}

// Symlink is os.Root.Symlink.
func (r Root) Symlink(text, name string) error {
	return r.within("symlink", name, func(dir int, base string) error { return unix.Symlinkat(text, dir, base) })
}

// Readlink is os.Root.Readlink.
func (r Root) Readlink(name string) (text string, err error) {
	err = r.within("readlink", name, func(dir int, base string) error {
		buffer := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, base, buffer)
		text = string(buffer[:max(n, 0)])
		return err
	})
	return text, err
}

// Lstat returns the status of any kind of entry, with additional flags of statx(2).
func (r Root) Lstat(name string, flags int) (stat unix.Statx_t, err error) {
	err = r.within("stat", name, func(dir int, base string) error {
		return unix.Statx(dir, base, unix.AT_SYMLINK_NOFOLLOW|flags, unix.STATX_BASIC_STATS, &stat)
	})
	return stat, err
}

// Touch sets the times of an entry to the present, by the filesystem's clock, which may be another machine's.
func (r Root) Touch(name string) error {
	return r.within("touch", name, func(dir int, base string) error {
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		return unix.UtimesNanoAt(dir, base, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
	})
}
