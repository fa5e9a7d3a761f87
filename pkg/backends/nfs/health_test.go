package nfs

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// opens counts how often a file of a directory is opened from now on.
func opens(tb testing.TB, dir string) (count func() int) {
	tb.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		tb.Fatal(err)
	}
	notes := os.NewFile(uintptr(fd), "inotify")
	tb.Cleanup(func() { _ = notes.Close() }) // It was read only.
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN); err != nil {
		tb.Fatal(err)
	}
	return func() (n int) {
		const header = unix.SizeofInotifyEvent
		buffer := make([]byte, 1<<20)
		size, err := unix.Read(fd, buffer)
		if err != nil {
			tb.Fatal(err)
		}
		for at := 0; at < size; n++ {
			at += header + int(buffer[at+12]) // The name's length is below 256, and is the header's last field.
		}
		return n
	}
}

// A page of what is unwell costs about as much as it shows, however many are unwell.
func TestHealthPagesReadWhatTheyShow(t *testing.T) {
	const volumes = 400
	w := newWorld(t)
	for i := range volumes {
		w.make(in(fmt.Sprintf("v%d", i), fmt.Sprintf("d%d", i), "retain"))
		w.must(os.Remove(w.path(fmt.Sprintf("d%d", i))))
	}
	_, next, err := w.ListHealth(w.Context(), backends.Page{Limit: 1})
	w.must(err)
	count := opens(t, w.path(share.HomeName, share.Volumes))
	unwell, _, err := w.ListHealth(w.Context(), backends.Page{Limit: 1, Token: next})
	w.must(err)
	if len(unwell) != 1 || unwell[0].Issues[0].Reason != "DataMissing" {
		t.Errorf("the page is %+v; want one volume whose data is missing", unwell)
	}
	if n := count(); n > volumes/2 {
		t.Errorf("%d of %d records were opened for a page of one", n, volumes)
	}
}
