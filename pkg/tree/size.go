package tree

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// blockSize is the unit of st_blocks (stat(2)).
const blockSize = 512

// Size is how many bytes the files below a directory take. Hard links count as often as they are. It fails as Replicate.
func Size(ctx context.Context, src *os.File) (bytes int64, err error) { return size(ctx, src, 0) }

func size(ctx context.Context, dir *os.File, depth int) (bytes int64, err error) {
	if depth >= maxDepth {
		return 0, ErrTooDeep
	}
	err = each(ctx, dir, func(n *node) error {
		defer n.close()
		if n.kind() == unix.S_IFREG {
			bytes += n.stat.Blocks * blockSize
		}
		if n.kind() != unix.S_IFDIR {
			return nil
		}
		from, err := n.open(0)
		if err != nil {
			return err
		}
		defer closeQuietly(from)
		below, err := size(ctx, from, depth+1)
		bytes += below
		return err
	})
	return bytes, err
}
