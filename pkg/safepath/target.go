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

// Target is a place for a mount: an open parent directory and the name of one element in it. Until Close it keeps the
// parent's filesystem busy, but not a filesystem that is mounted at the target itself.
type Target struct {
	parent *os.File
	name   string
	path   string
}

// OpenTarget opens the parent directory of an absolute path; the last element need not exist. Kinds: Invalid for a path
// that Absolute refuses, for the root directory and for a parent that is not a directory; NotFound when the parent does
// not exist.
func OpenTarget(target string) (*Target, error) {
	plain, err := Absolute(target)
	if err != nil {
		return nil, err
	}
	dir, name := path.Split(plain)
	if err := Name(name); err != nil {
		return nil, failure.Errorf(failure.Invalid, "path %q has no last element to work on: %w", target, err)
	}
	fd, err := openat2(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return nil, failure.Errorf(kindOf(err), "opening the parent directory of %q: %w", plain, err)
	}
	return &Target{parent: os.NewFile(uintptr(fd), dir), name: name, path: plain}, nil
}

// Path returns the plain absolute path with which the target was opened: for messages, and for interfaces of the kernel
// that accept only a path.
func (t *Target) Path() string { return t.path }

// Pinned returns a path through the open parent directory, even if the parent was renamed: for system calls that take a
// path and no descriptor, such as umount2(2). It needs /proc, and is valid only until Close.
func (t *Target) Pinned() string { return fmt.Sprintf("/proc/self/fd/%d/%s", t.fd(), t.name) }

// Close closes the parent directory.
func (t *Target) Close() error { return t.parent.Close() }

// Open opens the target with O_PATH, mounts included: for looking at it and mounting onto it, not for reading. Kinds:
// Invalid when it is a symlink; NotFound when nothing is there.
func (t *Target) Open() (*os.File, error) {
	// With O_NOFOLLOW the kernel would open the symlink itself (openat2(2), RESOLVE_NO_SYMLINKS).
	fd, err := openat2(t.fd(), t.name, unix.O_PATH, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, unix.ELOOP) {
		return nil, failure.Errorf(failure.Invalid, "%q is a symlink: it is not followed", t.path)
	}
	if err != nil {
		return nil, failure.Errorf(kindOf(err), "opening %q: %w", t.path, err)
	}
	return os.NewFile(uintptr(fd), t.path), nil
}

// MakeDir creates a directory with the permissions, less the process's umask. It leaves an existing directory as it is,
// and returns created false. Kinds: Invalid, naming what is there, for anything else.
func (t *Target) MakeDir(mode fs.FileMode) (created bool, err error) {
	return t.made(unix.Mkdirat(t.fd(), t.name, uint32(mode.Perm())), "a directory", isDirectory)
}

// MakeFile creates an empty file with the permissions, less the process's umask. It leaves an existing regular file as
// it is, and also a device node that is mounted over one, and returns created false. Kinds: Invalid, naming what is
// there, for anything else.
func (t *Target) MakeFile(mode fs.FileMode) (created bool, err error) {
	fd, err := unix.Openat(t.fd(), t.name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC,
		uint32(mode.Perm()))
	if err == nil {
		err = unix.Close(fd)
	}
	return t.made(err, "a file", isFile)
}

// made finishes MakeDir and MakeFile; err is the result of the system call.
func (t *Target) made(err error, what string, right func(unix.Statx_t) bool) (bool, error) {
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, unix.EEXIST) {
		return false, failure.Errorf(kindOf(err), "making %s at %q: %w", what, t.path, err)
	}
	stat, err := t.stat()
	if err != nil {
		return false, err
	}
	if !right(stat) {
		return false, failure.Errorf(failure.Invalid, "%q is %s: %s is needed there", t.path, typeName(stat.Mode), what)
	}
	return false, nil
}

// Remove removes the directory, file or symlink at the target. It succeeds if nothing is there. Kinds: InUse when a
// directory is not empty or when something is mounted there.
func (t *Target) Remove() error {
	stat, err := t.stat()
	if failure.Is(err, failure.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	flags := 0
	if isDirectory(stat) {
		flags = unix.AT_REMOVEDIR
	}
	err = unix.Unlinkat(t.fd(), t.name, flags)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return failure.Errorf(kindOf(err), "removing %s %q: %w", typeName(stat.Mode), t.path, err)
}

// stat returns the status of the last element. It neither follows the element nor triggers an automount.
func (t *Target) stat() (unix.Statx_t, error) {
	var stat unix.Statx_t
	err := unix.Statx(t.fd(), t.name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_MODE,
		&stat)
	if err != nil {
		return stat, failure.Errorf(kindOf(err), "looking at %q: %w", t.path, err)
	}
	return stat, nil
}

func (t *Target) fd() int { return int(t.parent.Fd()) }
