package local

import (
	"context"
	"io/fs"
	"iter"
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

func (images) heldBelow(dirs iter.Seq[string]) (sum int64) {
	for dir := range dirs {
		for _, info := range imagesIn(dir) {
			sum += blocksOf(info, nil)
		}
	}
	return sum
}

func (images) owes(dir string, _ func(string) int64) (sum int64) {
	for _, info := range imagesIn(dir) {
		sum += info.Size() - blocksOf(info, nil)
	}
	return sum
}

// imagesIn returns the images in the folder of a volume, a snapshot or a group, as far as stat(2) succeeds.
func imagesIn(dir string) (found []os.FileInfo) {
	files := os.DirFS(dir)
	for _, pattern := range []string{imageData, "*/" + imageData} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			continue // The pattern would be invalid.
		}
		for _, name := range names {
			if info, err := fs.Stat(files, name); err == nil {
				found = append(found, info)
			}
		}
	}
	return found
}

// ownBytes is how many bytes of an image are not shared with another.
func ownBytes(ctx context.Context, path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	return filecopy.OwnBytes(ctx, file)
}
