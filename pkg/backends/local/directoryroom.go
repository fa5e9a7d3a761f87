package local

import (
	"context"
	"iter"
	"math"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/rawfile"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// needs is the space that the directory takes, whatever was promised. For a copy that shares blocks it is the size,
// because that much may be overwritten.
func (directories) needs(ctx context.Context, path string, size int64, shared bool) (int64, error) {
	if shared {
		return size, nil
	}
	return treeBytes(ctx, path)
}

// holds is nothing for a snapshot, which was promised nothing, and for a volume that may share all its blocks.
func (directories) holds(t thing) holding {
	if t.snapshot || t.shared {
		return holding{free: math.MaxInt64}
	}
	return t.held().atMost(t.size)
}

func (directories) measures(t thing) func(context.Context, string) (int64, error) {
	if t.snapshot || t.shared {
		return nil
	}
	return treeBytes
}

func (directories) heldBelow(iter.Seq[string]) int64 { return 0 }

func (directories) owes(dir string, promised func(string) int64) int64 { return promised(dir) }

// treeBytes returns how many bytes of blocks a directory tree takes.
func treeBytes(ctx context.Context, path string) (int64, error) {
	root, err := rawfile.Open(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }() // It was only read.
	return tree.Measure(ctx, root)
}
