package local

import (
	"context"
	"errors"
	"os"

	"github.com/stowage-csi/stowage/pkg/filecopy"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// dataCopy is the copy of the data of one volume or snapshot. The copy of an image is not synced to disk.
type dataCopy struct {
	from   string
	volume *volume // the volume that owns the data; nil for a snapshot's. The caller owns it.
	to     string
	size   int64
	blocks filecopy.Blocks
	// moving says that the image may be written to meanwhile, so that only a copy of one instant is usable.
	moving bool
}

// shares reports whether the copy should be instant because it shares blocks. The kernel may refuse that for single
// files, for example on a btrfs if only one of the two is copied on write.
func (c dataCopy) shares() bool {
	return c.blocks == filecopy.Shared && c.volume != nil && c.volume.pool.reflink.Load() &&
		safepath.Within(c.volume.pool.path, c.to)
}

// run copies. It checks the image's size afterwards: the end of an image that was truncated meanwhile reads as zeros.
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
		err = errors.Join(err, os.Remove(c.to)) // copyFrozen creates it again.
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
