package filesystem

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// The signature areas, in bytes. All known signatures lie in the first 4 MiB and a header (the last copy of a LUKS2
// header) or the last MiB (ZFS labels, RAID superblocks, the second GPT) of a device. The function places has the other
// places that may tell about a device that lost its beginning.
const (
	headArea = 5 << 20
	tailArea = 1 << 20
	// piece is how many bytes are read at once in an area that is read in full.
	piece = 256 << 10
)

// window reads the signature areas of a device. The first error sticks, so that readers of signatures need not check
// for it: an unreadable area matches nothing, and is never blank.
type window struct {
	r     io.ReaderAt
	size  int64
	quick int64 // a disk up to this size is read in full before it counts as blank
	most  int64 // at most this much of an image's contents is read
	dense bool  // an image holds more than that
	// noted, if set, is called with the number of bytes that were read of a device that may be blank.
	noted func(bytes int64)
	parts []part
	err   error
	seen  string // the contents that are not zero, and where
}

// part is a piece of the device that was read beforehand.
type part struct {
	offset int64
	data   []byte
}

// newWindow reads the extents that are checked on every device.
func newWindow(r io.ReaderAt, size int64) *window {
	w := &window{r: r, size: size, quick: quickWhole, most: quickWhole}
	for _, e := range lookedAt(size) {
		w.parts = append(w.parts, part{e.offset, w.read(e.offset, e.length)})
	}
	return w
}

// extent is a range of bytes of a device.
type extent struct{ offset, length int64 }

// Announce makes the kernel begin to read what Probe inspects on an open device of this size, and does not wait: for a
// device all the places at once take hardly longer than one. It is a hint: Probe reports what cannot be read.
func Announce(dev *os.File, size int64) { announce(dev, lookedAt(size)) }

func announce(dev *os.File, list []extent) {
	for _, e := range list {
		_ = unix.Fadvise(int(dev.Fd()), e.offset, e.length, unix.FADV_WILLNEED)
	}
}

// lookedAt returns the extents of signatures() and the mark, so that on a device with contents only these few are read.
// What a signature needs beyond them is read on demand (at).
func lookedAt(size int64) []extent {
	const (
		head = 72 << 10 // up to the second superblock of UFS and the first of btrfs
		tail = 36 << 10 // RAID, DRBD and the second GPT
	)
	list := []extent{{0, min(head, size)}}
	near := func(offset, length int64) {
		// Whole pages, because the kernel reads no less.
		start := max(head, offset&^(markSize-1))
		if end := min(size, (offset+length+markSize-1)&^(markSize-1)); start < end {
			list = append(list, extent{start, end - start})
		}
	}
	near(vmfsVolume, 4)
	near(vmfsFilesystem, 4)
	near(size-tail, tail)
	near(raid09Place(size), 8)
	for _, back := range []int64{131072 + 512, 255 * 512, 399 * 512} { // DDF, and two places of Promise
		near(size-back, 512)
	}
	for _, place := range markPlaces(size) {
		near(place, markSize)
	}
	return list
}

// read reads exactly this many bytes; nil after an error.
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

// at returns this many bytes from the offset, or nil if the device has no such place.
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

// has reports whether the bytes are at the offset.
func (w *window) has(offset int64, magic string) bool {
	return string(w.at(offset, int64(len(magic)))) == magic
}

// zero reports whether every byte of an extent is zero, and records the first other byte in w.seen. A mark in its place
// does not count: the device was blank before, and still is if it holds nothing else.
func (w *window) zero(ctx context.Context, offset, length int64) bool {
	zeros, buf := make([]byte, min(piece, length)), make([]byte, min(piece, length))
	for end := offset + length; offset < end; offset += piece {
		if w.err == nil {
			w.err = ctx.Err()
		}
		part := buf[:min(piece, end-offset)]
		if w.err == nil {
			w.err = readFull(w.r, part, offset)
		}
		if w.err != nil {
			return false
		}
		if w.noted != nil {
			w.noted(int64(len(part)))
		}
		if bytes.Equal(part, zeros[:len(part)]) {
			continue
		}
		w.clearMarks(part, offset)
		if i := slices.IndexFunc(part, func(b byte) bool { return b != 0 }); i >= 0 {
			w.seen = fmt.Sprintf("data at byte %d", offset+int64(i))
			return false
		}
	}
	return true
}

// clearMarks removes the marks from data that was read at an offset.
func (w *window) clearMarks(part []byte, offset int64) {
	for _, place := range markPlaces(w.size) {
		start := place - offset
		if start < 0 || start+markSize > int64(len(part)) {
			continue
		}
		page := part[start : start+markSize]
		if _, marked := readMark(page, place); marked {
			clear(page)
		}
	}
}

// readFull fills the buffer; an earlier end of the device is an error.
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
