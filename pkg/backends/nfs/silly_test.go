package nfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// sillyNames watches folders of the driver on the server. The returned function returns the names that the kernel's
// client has created there since, for files that were open.
func (w *world) sillyNames(folders ...string) (since func() []string) {
	w.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	w.must(err)
	events := os.NewFile(uintptr(fd), "inotify")
	w.Cleanup(func() { w.must(events.Close()) })
	for _, folder := range folders {
		_, err := unix.InotifyAddWatch(fd, w.path(share.HomeName, folder), unix.IN_CREATE|unix.IN_MOVED_TO)
		w.must(err)
	}
	return func() (all []string) {
		w.Helper()
		buffer := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buffer)
			if errors.Is(err, unix.EAGAIN) {
				return all
			}
			w.must(err)
			for text := range strings.SplitSeq(string(buffer[:n]), "\x00") { // The names end with zeros.
				if at := strings.Index(text, ".nfs"); at >= 0 {
					all = append(all, text[at:])
				}
			}
		}
	}
}

// A record that is read just when it is replaced, or moved to the trash, changes in one step. The kernel's client would
// first give an open file another name (".nfs..."), and keep it if the second step fails: then the volume has no
// record.
func TestReadersTakeNoNameAway(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	w.must(second(w.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 2 << 20})))
	names := w.sillyNames(share.Volumes, share.Trash, share.Staging)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if _, err := w.Get(t.Context(), v.Handle); err != nil {
					t.Errorf("reading it: %v", err)
					return
				}
			}
		})
	}
	for i := range int64(50) {
		if err := second(w.Expand(t.Context(), v.Handle,
			backends.CapacityRange{RequiredBytes: (i + 3) << 20})); err != nil {
			t.Errorf("expanding it: %v", err)
			break
		}
	}
	cancel()
	readers.Wait()
	if names := names(); len(names) > 0 {
		t.Errorf("the client has made the names %q (%d of them), want none", names[0], len(names))
	}
	w.must(w.Delete(t.Context(), v.Handle))
	w.tidy(0, 0)
	left, err := filepath.Glob(w.path(share.HomeName, "*", ".nfs*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the client has left %q (%v)", left, err)
	}
}
