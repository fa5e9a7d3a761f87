package nfs

import (
	"context"
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// copying is the copy of one directory into one draft.
type copying struct {
	*making
	from     *origin
	draft    string        // from the share's root
	since    unix.Timespec // of which the copy must be; zero for no instant
	progress *tree.Progress
}

func (c *copying) run(ctx context.Context) error {
	src, err := safepath.OpenBeneath(c.share.Dir(), c.from.folder)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the data of the source cannot be reached: %w", err)
	}
	defer closeQuietly(src)
	dst, err := openDir(c.share, c.draft)
	if err != nil {
		return err
	}
	defer closeQuietly(dst)
	if err := c.share.Files().Mkdir(c.draft+linksSuffix, 0o700); err != nil {
		return err
	}
	links, err := openDir(c.share, c.draft+linksSuffix)
	if err != nil {
		return err
	}
	defer closeQuietly(links)
	if err := c.replicate(ctx, dst, src, links); err != nil {
		return err
	}
	return tree.Remove(ctx, path.Join(c.share.Path(), c.draft+linksSuffix))
}

// explained is a failure by its cause, which may be that the source was written to, or deleted.
func (c *copying) explained(err error) error {
	if gone := c.from.intact(c.making); backends.Is(gone, backends.NotFound) {
		return gone
	}
	if !errors.Is(err, tree.ErrChanged) {
		return err
	}
	return backends.Errorf(backends.InUse, "%s %s is written to, so that the copy is of no single instant: stop what writes, or accept that with sourceInUse=copy: %w", c.from.kind, c.from.handle, err)
}

func (c *copying) replicate(ctx context.Context, dst, src, links *os.File) error {
	return tree.Replicate(ctx, dst, src, tree.Replication{
		Workers: copyWorkers, Links: links, Lenient: true, Since: c.since, Lag: c.share.Lag(), Direct: c.share.Direct(), Progress: c.progress,
	})
}
