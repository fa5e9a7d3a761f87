package tree

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrMount means that a filesystem is mounted inside the tree. The walk never enters it.
var ErrMount = errors.New("a filesystem is mounted inside the tree")

// node is an open entry of a directory: it stays the same even if its name is reused.
type node struct {
	name string
	fd   int // opened with O_PATH: for looking, not for reading
	stat unix.Stat_t
}

// openNode opens an entry for looking only: no open routine of a device or fifo runs.
func openNode(dir *os.File, name string) (*node, error) {
	fd, err := openEntry(dir, name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	n := &node{name: name, fd: fd}
	if err := unix.Fstat(fd, &n.stat); err != nil {
		n.close()
		return nil, &os.PathError{Op: "fstat", Path: name, Err: err}
	}
	return n, nil
}

// openEntry opens an entry of dir itself: it follows no link and crosses no mount.
func openEntry(dir *os.File, name string, flags uint64) (int, error) {
	how := &unix.OpenHow{
		Flags:   flags | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_MAGICLINKS,
	}
	var err error
	for range mostRaces {
		var fd int
		fd, err = unix.Openat2(int(dir.Fd()), name, how)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN): // EAGAIN: a rename raced with the walk.
			continue
		case errors.Is(err, unix.EXDEV):
			return -1, fmt.Errorf("at %q: %w", name, ErrMount)
		}
		return -1, &os.PathError{Op: "openat2", Path: name, Err: err}
	}
	return -1, &os.PathError{Op: "openat2", Path: name, Err: err}
}

// openDir opens a directory for reading its names.
func openDir(dir *os.File, name string) (*os.File, error) {
	fd, err := openEntry(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// path returns a path of the node for system calls that accept only a path: the kernel follows the link to exactly this
// inode (proc(5), /proc/pid/fd), even if that is a symbolic link.
func (n *node) path() string { return "/proc/self/fd/" + strconv.Itoa(n.fd) }

func (n *node) kind() uint32 { return n.stat.Mode & unix.S_IFMT }

// open opens the node for reading, with further flags. It is called only for regular files and directories.
func (n *node) open(flags int) (*os.File, error) {
	file, err := os.OpenFile(n.path(), os.O_RDONLY|unix.O_NOATIME|flags, 0)
	if errors.Is(err, unix.EPERM) { // Only a file's owner and root may use O_NOATIME.
		return os.OpenFile(n.path(), os.O_RDONLY|flags, 0)
	}
	return file, err
}

// close closes the descriptor; nothing was written through it that could fail.
func (n *node) close() { _ = unix.Close(n.fd) }

// closeQuietly closes a file that was only read, or whose data is synced later.
func closeQuietly(file *os.File) { _ = file.Close() }
