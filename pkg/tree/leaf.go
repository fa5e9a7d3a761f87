package tree

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/filecopy"
)

// hardLink copies a file that has several names. The first copy gets an additional name in the directory of links,
// derived from its inode number; later names are linked to that. So any number of files can be found again without
// memory, and by a short path however deep the first name is.
func (c *copier) hardLink(ctx context.Context, dst *os.File, n *node) error {
	key := fmt.Sprintf("%x-%x", n.stat.Dev, n.stat.Ino)
	err := unix.Linkat(int(c.links.Fd()), key, int(dst.Fd()), n.name, 0)
	if !errors.Is(err, unix.ENOENT) {
		return linkError(n.name, err)
	}
	if err := c.leaf(ctx, dst, n); err != nil {
		return err
	}
	return linkError(n.name, unix.Linkat(int(dst.Fd()), n.name, int(c.links.Fd()), key, 0))
}

func linkError(name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: "linkat", Path: name, Err: err}
}

// leaf copies anything but a directory or socket, with its metadata.
func (c *copier) leaf(ctx context.Context, dst *os.File, n *node) error {
	meta, err := metadataOf(n)
	if err != nil {
		return err
	}
	meta.lenient = c.lenient
	switch n.kind() {
	case unix.S_IFREG:
		err = c.regular(ctx, dst, n)
	case unix.S_IFLNK:
		err = symlink(dst, n)
	default: // A fifo or a device node. An unprivileged pod cannot have created the latter.
		err = unix.Mknodat(int(dst.Fd()), n.name, n.kind()|0o600, int(n.stat.Rdev))
	}
	if err != nil {
		return fmt.Errorf("copying %q: %w", n.name, err)
	}
	return finish(dst, n.name, meta)
}

func (c *copier) regular(ctx context.Context, dst *os.File, n *node) error {
	flags := 0
	if c.direct {
		flags = unix.O_DIRECT
	}
	from, err := n.open(flags)
	if err != nil {
		return err
	}
	defer closeQuietly(from)
	fd, err := openNew(dst, n.name)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), n.name)
	err = filecopy.Duplicate(ctx, to, from, n.stat.Size, filecopy.Shared)
	return errors.Join(err, to.Close())
}

func openNew(dst *os.File, name string) (int, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	return unix.Openat(int(dst.Fd()), name, flags, 0o600)
}

func symlink(dst *os.File, n *node) error {
	target := make([]byte, unix.PathMax)
	length, err := unix.Readlinkat(n.fd, "", target)
	if err != nil {
		return err
	}
	return unix.Symlinkat(string(target[:length]), int(dst.Fd()), n.name)
}

// finish gives a new entry its metadata.
func finish(dst *os.File, name string, meta *metadata) error {
	n, err := openNode(dst, name)
	if err != nil {
		return err
	}
	defer n.close()
	return meta.apply(n)
}
