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

// Root is an open directory, and what lies below it by relative paths. Unlike os.Root it follows no symlink at all,
// also none that stays inside, and enters no other filesystem: who can write there can take a name away, but lead it
// nowhere.
//
// Its errors wrap those of the kernel, and are of no Kind but one: Unavailable for a directory on the way that is a
// symlink, or is on another filesystem. They never say of what is missing that it was not found.
type Root struct{ dir *os.File }

// NewRoot returns the root over an open directory, which stays the caller's.
func NewRoot(dir *os.File) Root { return Root{dir} }

// within does something with the last element of a path, in its directory.
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

// folder opens a directory for reaching what is in it, for which it need not be readable.
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
	fd, err := r.folder("chmod", name) // It may be one that its owner may not read.
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // O_PATH
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

// RenameTo is Rename to a place below another root.
func (r Root) RenameTo(name string, to Root, target string) error {
	return r.both("rename", name, to, target, unix.Renameat)
}

func (r Root) both(op, name string, to Root, target string,
	do func(from int, name string, to int, target string) error) error {
	err := r.within(op, name, func(from int, base string) error {
		return to.within(op, target, func(dir int, end string) error { return do(from, base, dir, end) })
	})
	if cause, ok := errors.AsType[unix.Errno](err); ok && !failure.Is(err, failure.Unavailable) {
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

// Lstat looks at what has a name, whatever it is, with the flags of statx(2) besides.
func (r Root) Lstat(name string, flags int) (stat unix.Statx_t, err error) {
	err = r.within("stat", name, func(dir int, base string) error {
		return unix.Statx(dir, base, unix.AT_SYMLINK_NOFOLLOW|flags, unix.STATX_BASIC_STATS, &stat)
	})
	return stat, err
}

// Touch gives what has a name the time of now, by the clock of the filesystem, which may be another machine's.
func (r Root) Touch(name string) error {
	return r.within("touch", name, func(dir int, base string) error {
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		return unix.UtimesNanoAt(dir, base, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
	})
}
