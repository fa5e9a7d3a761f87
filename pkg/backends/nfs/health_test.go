package nfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// opens counts how often files in a directory are opened from now on.
func opens(tb testing.TB, dir string) (count func() int) {
	tb.Helper()
	both := opened(tb, dir)
	return func() int { _, files := both(); return files }
}

// opened counts how often a directory, and the files in it, are opened from now on.
func opened(tb testing.TB, dir string) (count func() (self, files int)) {
	tb.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		tb.Fatal(err)
	}
	notes := os.NewFile(uintptr(fd), "inotify")
	tb.Cleanup(func() { _ = notes.Close() }) // It was only read.
	// The kernel merges several identical events: the close events in between keep them apart.
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN|unix.IN_CLOSE); err != nil {
		tb.Fatal(err)
	}
	return func() (self, files int) {
		const header = unix.SizeofInotifyEvent
		buffer := make([]byte, 1<<20)
		size, err := unix.Read(fd, buffer)
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			tb.Fatal(err)
		}
		for at := 0; at < size; {
			isOpen := binary.NativeEndian.Uint32(buffer[at+4:])&unix.IN_OPEN != 0
			length := int(binary.NativeEndian.Uint32(buffer[at+12:])) // of the name
			switch at += header + length; {
			case isOpen && length == 0:
				self++
			case isOpen:
				files++
			}
		}
		return self, files
	}
}

// A page of volumes, or of unwell ones, costs about as much as it shows, however many there are. Only the first page
// reads everything, so that it is known while the share is away.
func TestPagesReadWhatTheyShow(t *testing.T) {
	const volumes = 400
	w := newWorld(t)
	w.quiet(specOf("x")) // Nothing else reads records.
	for i := range volumes {
		w.make(in(fmt.Sprintf("v%d", i), fmt.Sprintf("d%d", i), "retain"))
		w.must(os.Remove(w.path(fmt.Sprintf("d%d", i))))
	}
	list := func(page backends.Page) (shown int, next string) {
		found, next, err := w.List(w.Context(), page)
		w.must(err)
		return len(found), next
	}
	unwell := func(page backends.Page) (shown int, next string) {
		found, next, err := w.ListHealth(w.Context(), page)
		w.must(err)
		for _, v := range found {
			if v.Issues[0].Reason != "DataMissing" {
				t.Errorf("%+v is listed; want volumes whose data is missing", v)
			}
		}
		return len(found), next
	}
	// Records are read 64 at a time, however small the page is. For unwell volumes a second round lists twice as many, and
	// each volume that is shown, or shows that there are more, is read once more.
	const read = 64
	for name, row := range map[string]struct {
		page func(backends.Page) (int, string)
		most int
	}{"volumes": {list, read}, "unwell": {unwell, 2 * (read + 1)}} {
		_, next := row.page(backends.Page{Limit: 1})
		count := opens(t, w.path(share.HomeName, share.Volumes))
		if shown, _ := row.page(backends.Page{Limit: 1, Token: next}); shown != 1 {
			t.Errorf("%s: a page of one has %d", name, shown)
		}
		if n := count(); n == 0 || n > row.most {
			t.Errorf("%s: %d of %d records were opened for a page of one, want %d at most", name, n, volumes, row.most)
		}
	}
}
