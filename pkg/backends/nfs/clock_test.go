package nfs

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// After the server's clock was set back since the instant of a copy, new files look as if they existed before.
func TestServerClockIsSetBack(t *testing.T) {
	w := newWorld(t)
	m, _ := w.attempt(in("one", "one", deleteData))
	open := func(dir string) *os.File {
		file, err := os.Open(dir)
		w.must(err)
		t.Cleanup(func() { file.Close() })
		return file
	}
	source := t.TempDir()
	w.must(os.WriteFile(source+"/file", []byte("text"), 0o644))
	from := origin{kind: volumeKind, handle: "source"}
	copied := func(since time.Time) error {
		instant := tree.Instant{At: unix.NsecToTimespec(since.UnixNano()), Seen: time.Now()}
		c := &copying{making: m, from: &from, since: instant, progress: new(tree.Progress)}
		return c.replicate(t.Context(), open(t.TempDir()), open(source), open(t.TempDir()))
	}
	w.fails("a copy of an instant that the clock has yet to reach", copied(time.Now().Add(10*time.Hour+30*time.Minute)),
		backends.Unavailable, "clock", "10h")
	<-time.After(2 * tick)
	now := time.Now()
	<-time.After(2 * tick)
	w.must(copied(now))
}
