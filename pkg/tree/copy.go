package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth bounds how many directories are open at a time, two for each level.
	maxDepth = 1024
	// batch is how many names of a directory are read at a time.
	batch = 1024
)

// ErrTooDeep means that the tree has more levels of directories than a copy supports.
var ErrTooDeep = fmt.Errorf("the tree has more than %d levels of directories", maxDepth)

// copier is a copy in progress.
type copier struct {
	links   *os.File // has one name for each file with several names: see hardLink
	lenient bool     // as in Replication
	direct  bool     // as in Replication
}

// Copy makes dst, which must not exist, a copy of the directory src, and returns when the copy is on disk. Both paths
// must belong to the caller up to their last name. During the copy, a directory dst.links exists. After a failure, such
// as the end of the context, both may be left incomplete.
//
// It fails with ErrMount, ErrTooDeep, or an error that wraps the kernel's.
func Copy(ctx context.Context, dst, src string) error {
	links := dst + ".links"
	if err := os.Mkdir(links, 0o700); err != nil {
		return err
	}
	anchor, err := os.Open(links)
	if err != nil {
		return err
	}
	defer closeQuietly(anchor)
	c := &copier{links: anchor}
	if err := c.root(ctx, dst, src); err != nil {
		return err
	}
	return Remove(ctx, links)
}

// root copies the tree and syncs its filesystem in one call, instead of an fsync for every file.
func (c *copier) root(ctx context.Context, dst, src string) error {
	from, err := os.Open(filepath.Dir(src))
	if err != nil {
		return err
	}
	defer closeQuietly(from)
	to, err := os.Open(filepath.Dir(dst))
	if err != nil {
		return err
	}
	defer closeQuietly(to)
	n, err := openNode(from, filepath.Base(src))
	if err != nil {
		return err
	}
	defer n.close()
	if err := c.directory(ctx, to, filepath.Base(dst), n, 0); err != nil {
		return err
	}
	return unix.Syncfs(int(to.Fd()))
}

// directory creates a directory like n in dst, with copies of its entries.
func (c *copier) directory(ctx context.Context, dst *os.File, name string, n *node, depth int) error {
	if depth >= maxDepth {
		return ErrTooDeep
	}
	meta, err := metadataOf(n)
	if err != nil {
		return err
	}
	from, err := n.open(0)
	if err != nil {
		return err
	}
	defer closeQuietly(from)
	if err := unix.Mkdirat(int(dst.Fd()), name, 0o700); err != nil {
		return &os.PathError{Op: "mkdirat", Path: name, Err: err}
	}
	to, err := openDir(dst, name)
	if err != nil {
		return err
	}
	defer closeQuietly(to)
	if err := c.entries(ctx, to, from, depth); err != nil {
		return err
	}
	return finish(dst, name, meta)
}

// entries copies all entries of a directory.
func (c *copier) entries(ctx context.Context, dst, src *os.File, depth int) error {
	for {
		names, err := src.Readdirnames(batch)
		for _, name := range names {
			if err := c.entry(ctx, dst, src, name, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// entry copies one entry. It ignores an entry that was removed meanwhile. If the directory is changed while it is read,
// a name may appear twice: it is copied once.
func (c *copier) entry(ctx context.Context, dst, src *os.File, name string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, err := openNode(src, name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer n.close()
	err = c.node(ctx, dst, n, depth)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// node copies an entry according to its kind.
func (c *copier) node(ctx context.Context, dst *os.File, n *node, depth int) error {
	switch n.kind() {
	case unix.S_IFDIR:
		return c.directory(ctx, dst, n.name, n, depth+1)
	case unix.S_IFSOCK:
		return nil
	}
	if n.stat.Nlink > 1 {
		return c.hardLink(ctx, dst, n)
	}
	return c.leaf(ctx, dst, n)
}
