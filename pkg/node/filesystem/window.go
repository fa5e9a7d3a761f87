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

// The signature areas, in bytes. All known signatures lie in the first 4 MiB and a header (the last copy
// of a LUKS2 header) or the last MiB (ZFS labels, RAID superblocks, the second GPT) of a device. What may be
// elsewhere when the beginning of a device was lost is in places.
const (
	headArea = 5 << 20
	tailArea = 1 << 20
	// piece is how much is read at once of what has to be read in full.
	piece = 256 << 10
)

// window reads a device where signatures are. The first failure sticks, so that the readers of signatures need
// not look for it: what cannot be read matches nothing, and is never blank.
type window struct {
	r     io.ReaderAt
	size  int64
	quick int64 // a disk up to this size is read in full before it counts as blank
	most  int64 // so much is read of what an image holds
	dense bool  // an image holds more than that
	// noted, where set, is told how many bytes were read of a device that may be blank.
	noted func(bytes int64)
	parts []part
	err   error
	seen  string // what is not zero, and where
}

// part is a piece of the device that was read beforehand.
type part struct {
	offset int64
	data   []byte
}

// newWindow reads what is looked at on every device.
func newWindow(r io.ReaderAt, size int64) *window {
	w := &window{r: r, size: size, quick: quickWhole, most: quickWhole}
	for _, e := range lookedAt(size) {
		w.parts = append(w.parts, part{e.offset, w.read(e.offset, e.length)})
	}
	return w
}

// extent is a range of bytes of a device.
type extent struct{ offset, length int64 }

// Announce has the kernel begin to read what Probe looks at on an open device of so many bytes, and waits for none of
// it: a device takes hardly longer for all the places at once than for one. It is a hint: Probe tells what cannot be
// read.
func Announce(dev *os.File, size int64) { announce(dev, lookedAt(size)) }

func announce(dev *os.File, list []extent) {
	for _, e := range list {
		_ = unix.Fadvise(int(dev.Fd()), e.offset, e.length, unix.FADV_WILLNEED)
	}
}

// lookedAt are the extents where signatures() and the mark are looked for, so that on a device that holds something no
// more is read than these few; what a signature needs beyond them is read when it asks (at).
func lookedAt(size int64) []extent {
	const (
		head = 72 << 10 // up to the second superblock of UFS and the first of btrfs
		tail = 36 << 10 // RAID, DRBD and the second GPT
	)
	list := []extent{{0, min(head, size)}}
	near := func(offset, length int64) {
		// Whole pages, since the kernel reads nothing less.
		start := max(head, offset&^(markSize-1))
		if end := min(size, (offset+length+markSize-1)&^(markSize-1)); start < end {
			list = append(list, extent{start, end - start})
		}
	}
	near(vmfsVolume, 4)
	near(vmfsFilesystem, 4)
	near(size-tail, tail)
	near(raid09Place(size), 8)
	for _, back := range []int64{131072 + 512, 255 * 512, 399 * 512} { // DDF, and the places of Promise's
		near(size-back, 512)
	}
	for _, place := range markPlaces(size) {
		near(place, markSize)
	}
	return list
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

// has reports whether the bytes are found at the offset.
func (w *window) has(offset int64, magic string) bool {
	return string(w.at(offset, int64(len(magic)))) == magic
}

// zero reports whether every byte of an extent is zero, and says in w.seen which is the first that is not. A mark that
// is in its place counts for nothing: what bears one was blank, and what holds no more is so still.
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

// clearMarks takes the marks out of what was read from an offset on.
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
