package local

import (
	"context"
	"io/fs"
	"math"
	"os"

	"github.com/stowage-csi/stowage/pkg/filecopy"
)

func (images) needs(_ context.Context, _ string, size int64, _ bool) (int64, error) { return size, nil }

func (images) holds(t thing) holding {
	own := min(t.size, blocksOf(os.Lstat(t.path)))
	if t.shared {
		return t.held().atMost(own)
	}
	return holding{bytes: own, free: math.MaxInt64}
}

func (images) measures(t thing) func(context.Context, string) (int64, error) {
	if t.shared {
		return ownBytes
	}
	return nil
}

func (images) heldBelow(dir, pattern string) (sum int64) {
	for _, info := range imagesBelow(dir, pattern) {
		sum += blocksOf(info, nil)
	}
	return sum
}

func (images) owes(_ *pool, dir string) (sum int64) {
	for _, info := range imagesBelow(dir, "") {
		sum += info.Size() - blocksOf(info, nil)
	}
	return sum
}

// imagesBelow are the images that can be looked at, of volumes, snapshots and groups where the pattern leads to.
func imagesBelow(dir, pattern string) (found []os.FileInfo) {
	files := os.DirFS(dir)
	for _, name := range []string{"image", "*/image"} {
		names, err := fs.Glob(files, pattern+name)
		if err != nil {
			continue // It would be a wrong pattern.
		}
		for _, name := range names {
			if info, err := fs.Stat(files, name); err == nil {
				found = append(found, info)
			}
		}
	}
	return found
}

// ownBytes are those of an image that it has in common with no other.
func ownBytes(ctx context.Context, path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	return filecopy.OwnBytes(ctx, file)
}
