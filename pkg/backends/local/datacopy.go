package local

import (
	"context"
	"errors"
	"os"

	"github.com/stowage-csi/stowage/pkg/filecopy"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// dataCopy is the copy of the data of one volume or snapshot. That of an image is not yet on disk when it is made.
type dataCopy struct {
	from   string
	volume *volume // whose data it is; nil for a snapshot's. The caller owns it.
	to     string
	size   int64
	blocks filecopy.Blocks
	// moving says that somebody may write to the image meanwhile: only a copy that is an instant's will do.
	moving bool
}

// shares reports whether the copy is to take no time, because blocks are shared. The kernel may refuse that of single
// files, such as those of a btrfs of which one is copied on write and the other is not.
func (c dataCopy) shares() bool {
	return c.blocks == filecopy.Shared && c.volume != nil && c.volume.pool.reflink.Load() &&
		safepath.Within(c.volume.pool.path, c.to)
}

// run copies. An image that was cut short meanwhile is found out afterwards: its end has read as zeros.
func (c dataCopy) run(ctx context.Context) error {
	src, err := os.Open(c.from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // It was only read.
	dst, err := os.OpenFile(c.to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = c.duplicate(ctx, dst, src)
	if err == nil {
		err = c.checkSource(src)
	}
	if c.moving && filecopy.NotSupported(err) {
		err = errors.Join(err, os.Remove(c.to)) // The copy at rest makes it anew.
	}
	return errors.Join(err, dst.Close())
}

func (c dataCopy) duplicate(ctx context.Context, dst, src *os.File) error {
	if !c.moving {
		return filecopy.Duplicate(ctx, dst, src, c.size, c.blocks)
	}
	if err := filecopy.Clone(dst, src); err != nil {
		return err
	}
	return dst.Truncate(c.size)
}

func (c dataCopy) checkSource(src *os.File) error {
	info, err := src.Stat()
	if err != nil {
		return err
	}
	return checkImage(info, c.size)
}
