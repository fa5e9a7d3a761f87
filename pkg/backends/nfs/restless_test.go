package nfs

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// writing appends to a log in a volume, until stop is called: repeatedly, and at each entry of a copy, however busy the
// machine is.
func (w *world) writing(volume string) (stop func()) {
	w.Helper()
	log, err := os.OpenFile(w.path(volume, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	w.must(err)
	_, err = fmt.Fprintln(log, "begun")
	w.must(err)
	ended := make(chan struct{})
	w.copies.entry = func(context.Context) {
		select {
		case <-ended:
		default:
			_, _ = fmt.Fprintln(log, "an entry is copied") // It may be closed just now.
		}
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			case <-tick.C:
				_, _ = fmt.Fprintln(log, i)
			}
		}
	})
	return sync.OnceFunc(func() { close(ended); writer.Wait(); w.must(log.Close()) })
}

// staged returns the number of bytes in drafts.
func (w *world) staged() (bytes int64) {
	_ = filepath.WalkDir(w.path(share.HomeName, share.Staging), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // It is gone meanwhile.
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// most tracks the maximum of staged bytes, until stop is called.
func (w *world) most() (stop func() int64) {
	most, ended := int64(0), make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for {
			select {
			case <-ended:
				return
			// Stimulus: a pause between two looks.
			case <-time.After(2 * time.Millisecond):
				most = max(most, w.staged())
			}
		}
	})
	return func() int64 { close(ended); watcher.Wait(); return most }
}

// holdCopies makes each copy wait at the given entry until it is given up.
func (w *world) holdCopies(entries int64) {
	write := w.copies.entry
	var mu sync.Mutex
	begun := map[context.Context]int64{}
	w.copies.entry = func(ctx context.Context) {
		write(ctx)
		mu.Lock()
		begun[ctx]++
		come := begun[ctx]
		mu.Unlock()
		if come < entries {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(patience):
			w.Errorf("after %v it was not noticed that the volume is written to", patience)
		}
	}
}

// Under a writer that never stops, a snapshot and a clone are refused with advice before much is copied, and made once
// it stops. A copy that has begun ends at its next look, for which it waits here before it has copied much.
func TestWriterThatNeverStops(t *testing.T) {
	w := newWorld(t)
	w.hurry(func(p *pace) { p.look = 10 * time.Millisecond })
	v := w.make(in("one", "one", deleteData))
	const files, size = 200, 1 << 20
	for i := range files {
		w.must(os.WriteFile(w.path("one", fmt.Sprintf("file%03d", i)), make([]byte, size), 0o644))
	}
	stop := w.writing("one")
	defer stop()
	w.holdCopies(files / 20)
	most := w.most()
	for range 10 { // the retries of a sidecar
		_, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
		w.fails("a snapshot of a volume that is written to", err, backends.InUse, "stop what writes", "sourceInUse=copy")
		_, err = w.Clone(t.Context(), in("two", "two", deleteData), v.Handle)
		w.fails("a clone of it", err, backends.InUse, "stop what writes", "sourceInUse=copy")
	}
	w.tidy(1, 0)
	if copied := most(); copied > files*size/4 {
		t.Errorf("%d bytes of %d were copied before it was noticed that the volume is written to", copied, files*size)
	}
	stop()
	w.copies.entry = nil
	begun := time.Now()
	for {
		_, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
		if err == nil {
			break
		}
		w.fails("a snapshot shortly after", err, backends.InUse)
		if time.Since(begun) > patience {
			t.Fatalf("%v after the last write there is no snapshot: %v", patience, err)
		}
		<-time.After(100 * time.Millisecond)
	}
	snapshots, err := filepath.Glob(w.path(share.HomeName, share.Snapshots, "*-*"))
	w.must(err)
	if len(snapshots) != 1 || contents(t, snapshots[0]) != contents(t, w.path("one")) {
		t.Errorf("of %d snapshots the first is not what the volume was", len(snapshots))
	}
	w.tidy(1, 1)
}

// However rarely a volume is written to, disturbed copies come to an end: the wait before the next one doubles.
func TestDisturbedCopiesEnd(t *testing.T) {
	for _, pause := range []time.Duration{3 * time.Second, time.Minute, 5 * time.Hour} {
		var r restless
		copies := 0
		for ; r.asked("v") < pause; copies++ {
			r.disturbed("v", min(pause-r.asked("v"), 100*time.Millisecond))
		}
		if copies > 20 {
			t.Errorf("of a volume that is written to every %v %d copies are begun", pause, copies)
		}
	}
}

// onSmallShare returns a volume with the given amount of data on a share of 64 MiB, of which copies leave 3 MiB free.
func onSmallShare(t *testing.T, megabytes int) (*world, *backends.Volume) {
	w := newWorld(t)
	w.must(unix.Mount("small", w.root, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { w.must(unix.Unmount(w.root, unix.MNT_DETACH)) })
	w.hurry(func(p *pace) { p.look = time.Millisecond })
	spec := in("one", "one", deleteData)
	spec.Capacity.RequiredBytes = 4096
	v := w.make(spec)
	for i := range 256 * megabytes {
		w.must(os.WriteFile(w.path("one", fmt.Sprint("file", i)), make([]byte, 1<<12), 0o644))
	}
	return w, v
}

// A snapshot that does not fit is refused before it takes the space that others need.
func TestCopyThatDoesNotFit(t *testing.T) {
	w, v := onSmallShare(t, 40)
	most := w.most()
	_, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	w.fails("a snapshot that does not fit", err, backends.Exhausted, "free space there")
	if copied := most(); copied > 10<<20 {
		t.Errorf("%d bytes were copied of what does not fit", copied)
	}
	w.tidy(1, 0)
	w.shut()
}

// A copy on one share does not reduce the free space of another.
func TestCopyOnAnotherShare(t *testing.T) {
	w, other := newPair(t)
	w.must(unix.Mount("small", other, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { w.must(unix.Unmount(other, unix.MNT_DETACH)) })
	small, large := onShare("small", "other"), onShare("large", "one")
	small.Capacity.RequiredBytes = 4096
	large.Parameters.(*Parameters).SubDir = "large"
	volume, source := w.make(small), w.make(large)
	w.must(os.WriteFile(w.path("large", "file"), make([]byte, 80<<20), 0o644))
	g := w.gateAt(1)
	take := func(ctx context.Context, name string, of *backends.Volume) error {
		return second(w.CreateSnapshot(ctx, backends.SnapshotSpec{Name: name, Volume: of.Handle}))
	}
	w.outlived(g, "a large snapshot", func(ctx context.Context) error { return take(ctx, "large", source) })
	w.must(take(t.Context(), "small", volume))
	g.open()
	w.ask("the large snapshot", func() error { return take(t.Context(), "large", source) })
	w.shut()
}

// fillUp writes until there is no room for the given number of bytes.
func fillUp(file *os.File, bytes int) {
	var err error
	for err == nil {
		_, err = file.Write(make([]byte, bytes))
	}
}

// A copy stops at the reserve while others fill the share, and giving up works when nothing can be written.
func TestShareFillsDuringACopy(t *testing.T) {
	w, v := onSmallShare(t, 25)
	fill, err := os.Create(w.path("fill"))
	w.must(err)
	g := w.gateAt(500)
	var filler sync.WaitGroup
	filler.Go(func() {
		<-g.reached
		fillUp(fill, 1<<16)
		g.open()
	})
	_, err = w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	w.fails("a snapshot while others fill the share", err, backends.Exhausted)
	filler.Wait()
	fillUp(fill, 1)
	w.tidy(1, 0)
	w.must(w.Delete(t.Context(), v.Handle))
	w.tidy(0, 0)
	w.must(fill.Close())
	w.shut()
}

// A volume that takes most of the share is created from a snapshot even if the copy takes several calls: the copy's own
// space does not count as missing.
func TestCopyLeavesNoRoomForItself(t *testing.T) {
	w, v := onSmallShare(t, 12)
	s, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	w.must(err)
	spec := in("two", "two", deleteData)
	spec.Capacity.RequiredBytes = 38 << 20
	g := w.gateAt(1800)
	w.outlived(g, "a restore", func(ctx context.Context) error { return second(w.Restore(ctx, spec, s.Handle)) })
	w.eventually("the copy", func() bool { return w.staged() > 6<<20 })
	g.open()
	w.ask("restoring", func() error { _, err := w.Restore(t.Context(), spec, s.Handle); return err })
	w.tidy(2, 1)
	w.shut()
}
