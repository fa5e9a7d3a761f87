package filesystem

import (
	"bytes"
	"context"
	"io"

	"golang.org/x/sync/errgroup"
)

// The signature areas, in bytes. All known signatures lie in the first 4 MiB and a header (the last copy
// of a LUKS2 header) or the last MiB (ZFS labels, RAID superblocks, the second GPT) of a device.
const (
	headArea = 5 << 20
	tailArea = 1 << 20
	// cached is how much of each end is read at once: enough for all but the deepest signatures.
	cached = 256 << 10
)

// window reads a device where signatures are. The first failure sticks, so that the readers of signatures need
// not look for it: what cannot be read matches nothing, and is never blank.
type window struct {
	r     io.ReaderAt
	size  int64
	parts []part
	err   error
}

// part is a piece of the device that was read beforehand.
type part struct {
	offset int64
	data   []byte
}

// newWindow reads what is looked at on every device: both ends, and the places of the mark. A device takes hardly
// longer for all of them at once than for one.
func newWindow(r io.ReaderAt, size int64) *window {
	w := &window{r: r, size: size, parts: []part{{0, make([]byte, min(cached, size))}}}
	if size > cached {
		start := max(cached, size-cached)
		w.parts = append(w.parts, part{start, make([]byte, size-start)})
	}
	for _, place := range markPlaces(size) {
		if place >= cached && place+markSize <= size-cached {
			w.parts = append(w.parts, part{place, make([]byte, markSize)})
		}
	}
	var reads errgroup.Group
	for _, p := range w.parts {
		reads.Go(func() error { return readFull(r, p.data, p.offset) })
	}
	w.err = reads.Wait()
	return w
}

// read reads exactly so many bytes; nothing after a failure.
func (w *window) read(offset, length int64) []byte {
	if w.err != nil {
		return nil
	}
	buf := make([]byte, length)
	if w.err = readFull(w.r, buf, offset); w.err != nil {
		return nil
	}
	return buf
}

// at returns so many bytes from the offset, or nil where the device has no such place.
func (w *window) at(offset, length int64) []byte {
	if offset < 0 || offset > w.size-length {
		return nil
	}
	for _, p := range w.parts {
		if start := offset - p.offset; start >= 0 && start+length <= int64(len(p.data)) && w.err == nil {
			return p.data[start : start+length]
		}
	}
	return w.read(offset, length)
}

// has tells whether the bytes are found at the offset.
func (w *window) has(offset int64, magic string) bool {
	return string(w.at(offset, int64(len(magic)))) == magic
}

// blank reads both signature areas and tells whether every byte in them is zero.
func (w *window) blank(ctx context.Context) bool {
	if w.size <= headArea+tailArea {
		return w.zero(ctx, 0, w.size)
	}
	return w.zero(ctx, 0, headArea) && w.zero(ctx, w.size-tailArea, tailArea)
}

func (w *window) zero(ctx context.Context, offset, length int64) bool {
	zeros, buf := make([]byte, cached), make([]byte, cached)
	for end := offset + length; offset < end; offset += cached {
		if w.err == nil {
			w.err = ctx.Err()
		}
		part := buf[:min(cached, end-offset)]
		if w.err == nil {
			w.err = readFull(w.r, part, offset)
		}
		if w.err != nil || !bytes.Equal(part, zeros[:len(part)]) {
			return false
		}
	}
	return true
}

// readFull fills the buffer; the end of the device before that is an error.
func readFull(r io.ReaderAt, buf []byte, offset int64) error {
	n, err := r.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
