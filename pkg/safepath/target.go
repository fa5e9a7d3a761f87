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

// Target is a place for a mount: an open parent directory and the name of one element in it. Until Close
// it keeps the filesystem that the parent is on busy; what is mounted at the target itself it does not.
type Target struct {
	parent *os.File
	name   string
	path   string
}

// OpenTarget opens the parent directory of an absolute path; the last element need not exist.
// Kinds: Invalid for a path that Absolute refuses, for the root directory and for a parent that is no
// directory; NotFound when the parent does not exist.
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

// Path returns the plain absolute path that the target was opened with: for messages and for the
// kernel's interfaces that take nothing else.
func (t *Target) Path() string { return t.path }

// Pinned returns a path that leads through the open parent directory, whatever has become of its name:
// for system calls that take a path and no descriptor, such as umount2(2). It needs /proc, and holds only
// until Close.
func (t *Target) Pinned() string { return fmt.Sprintf("/proc/self/fd/%d/%s", t.fd(), t.name) }

// Close lets go of the parent directory.
func (t *Target) Close() error { return t.parent.Close() }

// Open opens whatever is at the target, mounts included, with O_PATH: good for looking at it and for
// mounting onto it, not for reading. Kinds: Invalid when it is a symlink; NotFound when nothing is there.
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

// MakeDir makes a directory with the permissions, less the process's umask. A directory that is there
// already is left as it is and created is false. Kinds: Invalid, naming what is there, for anything else.
func (t *Target) MakeDir(mode fs.FileMode) (created bool, err error) {
	return t.made(unix.Mkdirat(t.fd(), t.name, uint32(mode.Perm())), "a directory", isDirectory)
}

// MakeFile makes an empty file with the permissions, less the process's umask. A regular file that is
// there already is left as it is, and so is a device node that is mounted over one: created is false.
// Kinds: Invalid, naming what is there, for anything else.
func (t *Target) MakeFile(mode fs.FileMode) (created bool, err error) {
	fd, err := unix.Openat(t.fd(), t.name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC,
		uint32(mode.Perm()))
	if err == nil {
		err = unix.Close(fd)
	}
	return t.made(err, "a file", isFile)
}

// made finishes MakeDir and MakeFile: err is how the making ended.
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

// Remove removes the directory, file or symlink itself at the target. Nothing there is no error.
// Kinds: InUse when a directory is not empty or when something is mounted there.
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

// stat looks at the last element without following it or setting off an automount.
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
