package nfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
	"github.com/stowage-csi/stowage/tests/stall"
)

// The arguments that make the test's program another controller, and the names of its volumes.
const (
	cloneWord    = "clone"
	snapshotWord = "snapshot"
	sourceName   = "source"
	copyName     = "copy"
)

// otherController makes a copy, and stops itself when it has begun the given number of files.
func otherController(word, servers, count string) int {
	files, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		panic(err)
	}
	instance, err := DefinitionOver(standin.Servers(servers)).Open(context.Background(), backends.Options{
		Driver: "nfs.test", DataDir: servers, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		panic(err)
	}
	e, ctx := askedOnce(instance), context.Background()
	var entries atomic.Int64
	e.copies.entry = func(context.Context) {
		if entries.Add(1) == files {
			stall.Freeze()
		}
	}
	v, err := e.Find(ctx, in(sourceName, sourceName, deleteData))
	for range 2 { // It is turned away first: another was called before.
		if v != nil && word == snapshotWord {
			_, err = e.CreateSnapshot(ctx, backends.SnapshotSpec{Name: copyName, Volume: v.Handle})
		} else if v != nil {
			_, err = e.Clone(ctx, in(copyName, copyName, deleteData), v.Handle)
		}
		if entries.Load() > 0 {
			break
		}
	}
	fmt.Fprintln(os.Stdout, "the answer:", err)
	if err := backendtest.Close(ctx, instance); err != nil {
		panic(err)
	}
	return 0
}

// another starts another controller and returns when it has stopped itself in the middle of its copy.
func (w *world) another(word string, files int) *exec.Cmd {
	w.Helper()
	other := exec.CommandContext(w.Context(), "/proc/self/exe", word, filepath.Dir(filepath.Dir(w.root)),
		fmt.Sprint(files))
	other.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	other.Stdout = new(bytes.Buffer)
	w.must(other.Start())
	w.eventually("the other's copy", func() bool {
		var status unix.WaitStatus
		pid, err := unix.Wait4(other.Process.Pid, &status, unix.WUNTRACED|unix.WNOHANG, nil)
		w.must(err)
		if pid != 0 && !status.Stopped() {
			w.Fatalf("the other controller ended before it had copied %d files: %s", files, other.Stdout)
		}
		return pid != 0
	})
	return other
}

// sourceOf creates a volume with the given number of files.
func (w *world) sourceOf(files int) *backends.Volume {
	w.Helper()
	v := w.make(in(sourceName, sourceName, deleteData))
	for i := range files {
		w.must(os.WriteFile(w.path(sourceName, fmt.Sprintf("file%05d", i)), []byte("the source's"), 0o644))
	}
	w.noticed()
	return v
}

// contents returns the files of a directory with hashes of their contents.
func contents(tb testing.TB, dir string) string {
	tb.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&all, "%s %x\n", name, sha256.Sum256(data))
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all.String()
}

// A controller is stopped in the middle of a clone and overtaken. When it resumes, it does not touch the volume that
// another has created.
func TestDeposedControllerLeavesTheVolumeAlone(t *testing.T) {
	w := newWorld(t)
	v := w.sourceOf(2000)
	deposed := w.another(cloneWord, 300)
	var err error
	w.ask("taking over", func() error {
		_, err = w.Clone(w.Context(), in(copyName, copyName, deleteData), v.Handle)
		return err
	})
	for i := range 2000 { // The volume is in use now.
		w.must(os.WriteFile(w.path(copyName, fmt.Sprintf("file%05d", i)), fmt.Appendf(nil, "the pod's %d", i), 0o644))
	}
	before := contents(t, w.path(copyName))
	w.must(deposed.Process.Signal(unix.SIGCONT))
	w.must(deposed.Wait())
	if contents(t, w.path(copyName)) != before {
		t.Error("the deposed controller has changed the volume of the one that took over")
	}
	if answer := deposed.Stdout.(*bytes.Buffer).String(); strings.Contains(answer, "<nil>") {
		t.Errorf("the deposed controller says that it has made the volume: %s", answer)
	}
	w.must(w.Delete(w.Context(), v.Handle))
	w.tidy(1, 0)
}

// A deposed controller does not bring back what was deleted after it was overtaken.
func TestDeposedControllerBringsNothingBack(t *testing.T) {
	w := newWorld(t)
	v := w.sourceOf(2000)
	deposed := w.another(cloneWord, 300)
	var clone *backends.Volume
	w.ask("taking over", func() (err error) {
		clone, err = w.Clone(w.Context(), in(copyName, copyName, deleteData), v.Handle)
		return err
	})
	w.must(w.Delete(w.Context(), clone.Handle))
	w.must(deposed.Process.Signal(unix.SIGCONT))
	w.must(deposed.Wait())
	w.must(w.Delete(w.Context(), v.Handle))
	w.tidy(0, 0)
	if _, err := os.Lstat(w.path(copyName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was deleted is there again: %v", err)
	}
}

// An interrupted copy is not continued: files that the source no longer has are not in the next copy.
func TestInterruptedCopyIsBegunAnew(t *testing.T) {
	w := newWorld(t)
	v := w.sourceOf(2000)
	killed := w.another(snapshotWord, 1000)
	w.must(killed.Process.Kill())
	_ = killed.Wait() // by a signal
	drafts, err := filepath.Glob(w.path(share.HomeName, share.Staging, "*", "file*"))
	w.must(err)
	for _, copied := range drafts {
		w.must(os.Remove(w.path(sourceName, filepath.Base(copied))))
	}
	w.noticed()
	w.ask("asking again", func() error {
		_, err := w.CreateSnapshot(w.Context(), backends.SnapshotSpec{Name: copyName, Volume: v.Handle})
		return err
	})
	snapshots, err := filepath.Glob(w.path(share.HomeName, share.Snapshots, "*-*"))
	w.must(err)
	if len(snapshots) != 1 || contents(t, snapshots[0]) != contents(t, w.path(sourceName)) {
		t.Errorf("of %d snapshots the first is not what the volume was between the call and its answer", len(snapshots))
	}
	w.tidy(1, 1)
}

// otherWorld returns a second controller of the same share, in this process.
func (w *world) otherWorld() *world {
	w.Helper()
	other := &world{TB: w.TB, root: w.root, mount: w.mount, log: &logBuffer{}, config: &Config{}, data: w.TempDir()}
	other.open()
	w.Cleanup(other.shut)
	return other
}

// If another controller deletes a snapshot or volume while it is copied, the copy is complete or fails: no copy lacks
// files.
func TestSourceIsDeletedByAnother(t *testing.T) {
	w := newWorld(t)
	other := w.otherWorld()
	v := w.make(in(sourceName, sourceName, deleteData))
	for i := range 20 { // The copy reaches some of the directories before the removal does, and others after it.
		for j := range 20 {
			w.write(strings.Repeat("x", 100_000), sourceName, fmt.Sprint("dir", i), fmt.Sprint("file", j))
		}
	}
	w.noticed()
	want := contents(t, w.path(sourceName))
	refused := 0
	const rounds = 4
	for round := range rounds {
		name := fmt.Sprint("restored", round)
		w.leads()
		s, err := w.CreateSnapshot(w.Context(), backends.SnapshotSpec{Name: fmt.Sprint("s", round), Volume: v.Handle})
		w.must(err)
		other.leads()
		g := other.gateAt(int64(1+3*round) * 21)
		var deleting sync.WaitGroup
		deleting.Go(func() {
			<-g.reached
			err := w.DeleteSnapshot(w.Context(), s.Handle)
			if backends.Is(err, backends.Busy) { // The other one was called since.
				err = w.DeleteSnapshot(w.Context(), s.Handle)
			}
			if err != nil {
				t.Error(err)
			}
			if round == rounds-1 { // This copy meets the removal, however fast it is.
				w.removeFromTheEnd()
				g.open()
				return
			}
			g.open()
			w.removeFromTheEnd()
		})
		_, err = other.Restore(w.Context(), in(name, name, deleteData), s.Handle)
		deleting.Wait()
		switch {
		case err != nil:
			w.fails("restoring", err, backends.NotFound)
			refused++
		case contents(t, w.path(name)) != want:
			t.Errorf("restored with success, %s is not what the snapshot was", name)
		default:
			w.ask("deleting", func() error { return unless(w.DeleteSnapshot(w.Context(), s.Handle), backends.NotFound) })
		}
		w.tidy(1+round+1-refused, 0) // The next round must not mistake this one's draft for its own.
	}
	if refused == 0 {
		t.Error("no deletion ran into a copy: nothing was tested")
	}
}

// removeFromTheEnd helps the janitor with a snapshot, starting at the other end than the copy.
func (w *world) removeFromTheEnd() {
	data, err := filepath.Glob(w.path(share.HomeName, share.Trash, "*-????????????????"))
	if err != nil || len(data) != 1 {
		return // The janitor was faster.
	}
	dir, err := os.Open(data[0])
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range slices.Backward(names) {
		_ = os.RemoveAll(filepath.Join(data[0], name)) // The janitor may remove the same.
	}
}

// This controller does not delete a source that it is copying.
func TestSourceIsHeldWhileItIsCopied(t *testing.T) {
	w := newWorld(t)
	v := w.sourceOf(1200)
	s, err := w.CreateSnapshot(w.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	w.must(err)
	g := w.gateAt(10)
	w.outlived(g, "a restore", func(ctx context.Context) error {
		return second(w.Restore(ctx, in(copyName, copyName, deleteData), s.Handle))
	})
	w.fails("deleting the snapshot", w.DeleteSnapshot(t.Context(), s.Handle), backends.Busy, "being copied")
	g.open()
	w.ask("restoring", func() error {
		_, err := w.Restore(t.Context(), in(copyName, copyName, deleteData), s.Handle)
		return err
	})
	w.must(w.DeleteSnapshot(t.Context(), s.Handle))
	w.tidy(2, 0)
}

// A restore that is never finished, because its snapshot is deleted between two calls, leaves nothing.
func TestSourceGoesBetweenTwoCalls(t *testing.T) {
	w := newWorld(t)
	v := w.sourceOf(1200)
	s, err := w.CreateSnapshot(w.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	w.must(err)
	g := w.gateAt(10)
	w.outlived(g, "a restore", func(ctx context.Context) error {
		return second(w.Restore(ctx, in(copyName, copyName, deleteData), s.Handle))
	})
	g.open()
	w.ask("deleting the snapshot", func() error { return w.DeleteSnapshot(t.Context(), s.Handle) })
	_, err = w.Restore(t.Context(), in(copyName, copyName, deleteData), s.Handle)
	w.fails("restoring what is gone", err, backends.NotFound)
	w.tidy(1, 0)
}

// A copy that waits to be published is not mistaken for one of another snapshot of the same name.
func TestSourceIsMadeAnewBetweenTwoCalls(t *testing.T) {
	w := newWorld(t)
	v := w.sourceOf(1200)
	snapshot := func() *backends.Snapshot {
		w.noticed()
		s, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
		w.must(err)
		return s
	}
	s := snapshot()
	g := w.gateAt(10)
	w.outlived(g, "a restore", func(ctx context.Context) error {
		return second(w.Restore(ctx, in(copyName, copyName, deleteData), s.Handle))
	})
	g.open()
	w.ask("deleting the snapshot", func() error { return w.DeleteSnapshot(t.Context(), s.Handle) })
	w.must(os.WriteFile(w.path(sourceName, "file00000"), []byte("of the second"), 0o644))
	s = snapshot()
	w.ask("restoring", func() error {
		_, err := w.Restore(t.Context(), in(copyName, copyName, deleteData), s.Handle)
		return err
	})
	if have, err := os.ReadFile(w.path(copyName, "file00000")); err != nil || string(have) != "of the second" {
		t.Errorf("the restored file holds %q (%v), and the snapshot's is of another one that was deleted", have, err)
	}
}

// A copy that no call requests any more does not stay.
func TestUnwantedCopyGoes(t *testing.T) {
	w := newWorld(t)
	w.hurry(func(p *pace) { p.look, p.kept = 10*time.Millisecond, 50*time.Millisecond })
	v := w.sourceOf(1000)
	g := w.gateAt(10)
	w.outlived(g, "a clone", func(ctx context.Context) error {
		return second(w.Clone(ctx, in(copyName, copyName, deleteData), v.Handle))
	})
	w.tidy(1, 0)
}

// The janitor does not remove a draft whose record cannot be read, or is of a newer driver.
func TestDraftsOfNewerVersionsStay(t *testing.T) {
	w := newWorld(t)
	w.quiet(specOf("first"))
	w.make(specOf("first")) // creates the driver's directory
	const id, turn = "00112233445566778899aabbccddeeff", "-0123456789abcdef"
	old := time.Now().Add(-48 * time.Hour)
	for i, record := range []string{
		share.Making + "/volume-%s.json", share.Staging + "/%s" + turn + ".json", share.Volumes + "/%s.json",
		share.Snapshots + "/%s.json",
	} {
		this := fmt.Sprint(i) + id[1:]
		draft := []string{share.HomeName, share.Staging, this + turn}
		w.write(`{"version": 99}`, share.HomeName, fmt.Sprintf(record, this))
		w.write("data", append(draft, "file")...)
		for _, path := range []string{w.path(draft...), w.path(share.HomeName, fmt.Sprintf(record, this))} {
			w.must(os.Chtimes(path, old, old))
		}
	}
	w.write("data", share.HomeName, share.Staging, "9"+id[1:]+turn, "file") // of no attempt
	w.nodeOnly = false
	w.hurry(func(p *pace) { p.patience = 20 * time.Millisecond })
	w.ask("waking the janitor",
		func() error { return w.Delete(w.Context(), w.make(in("last", "last", deleteData)).Handle) })
	w.eventually("removing what is nobody's", func() bool {
		_, err := os.Lstat(w.path(share.HomeName, share.Staging, "9"+id[1:]+turn))
		return errors.Is(err, fs.ErrNotExist)
	})
	for i := range 4 {
		if _, err := os.Lstat(w.path(share.HomeName, share.Staging, fmt.Sprint(i)+id[1:]+turn, "file")); err != nil {
			t.Errorf("draft %d: %v", i, err)
		}
	}
}

// An attempt that takes longer to write its token than the interval of its signs of life does not count as ended by
// another.
func TestTokenThatTakesLongerThanABeat(t *testing.T) {
	w := newWorld(t)
	v := w.sourceOf(1)
	w.hurry(func(p *pace) { p.look, p.beat = 10*time.Microsecond, time.Nanosecond })
	for i := range 5 {
		name := fmt.Sprint("clone", i)
		if _, err := w.Clone(t.Context(), in(name, name, deleteData), v.Handle); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tokens returns the tokens of attempts, alive or dead.
func (w *world) tokens() []string {
	w.Helper()
	paths, err := filepath.Glob(w.path(share.HomeName, share.Staging, "*"+suffix))
	w.must(err)
	for i, path := range paths {
		paths[i] = filepath.Base(path)
	}
	return paths
}

// looks returns the appearance of an entry in staging; empty if it is gone.
func (w *world) looks(name string) string {
	var stat unix.Statx_t
	path := w.path(share.HomeName, share.Staging, name)
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &stat) != nil {
		return ""
	}
	return appearance(stat)
}

// timePasses moves the janitor's sightings of the attempts back by the given time. It does so only if the janitor has
// seen all of them, and exactly one has shown a sign of life since.
func (w *world) timePasses(ago time.Duration) bool {
	w.janitors.mu.Lock()
	defer w.janitors.mu.Unlock()
	alive, tokens := 0, w.tokens()
	for where, s := range w.janitors.seen {
		if _, name, _ := strings.Cut(where, " "); slices.Contains(tokens, name) {
			tokens = slices.DeleteFunc(tokens, func(token string) bool { return token == name })
			if w.looks(name) != s.as {
				alive++
			}
		}
	}
	if len(tokens) > 0 || alive != 1 {
		return false
	}
	for where, s := range w.janitors.seen {
		w.janitors.seen[where] = sighting{s.as, s.since.Add(-ago)}
	}
	return true
}

// wakeJanitors makes waiting janitors look now.
func (w *world) wakeJanitors() {
	w.janitors.mu.Lock()
	defer w.janitors.mu.Unlock()
	for _, more := range w.janitors.active {
		select {
		case more <- struct{}{}:
		default: // It has been woken already.
		}
	}
}

// janitorsLook returns a function that wakes the janitors. It reports whether each has made a complete round since its
// first call, or has ended because all was done.
func (w *world) janitorsLook() func() bool {
	woken := map[chan struct{}]int{}
	return func() bool {
		w.janitors.mu.Lock()
		defer w.janitors.mu.Unlock()
		looked := true
		for _, more := range w.janitors.active {
			select {
			case more <- struct{}{}:
				woken[more]++
			default: // It is in the middle of a round.
			}
			// It begins a round when it takes the first, and takes the second after that round.
			looked = looked && woken[more] > 2
		}
		return looked
	}
}

// The draft of a live controller stays, and that of a dead one goes, whatever the server's clock says.
func TestDraftOfTheLiving(t *testing.T) {
	w := newWorld(t)
	v := w.sourceOf(2000)
	w.reopen()
	dead := w.another(cloneWord, 100)
	living := w.otherWorld()
	living.hurry(func(p *pace) { p.look, p.beat = 20*time.Millisecond, 20*time.Millisecond })
	living.leads()
	g := living.gateAt(10)
	w.outlived(g, "a clone", func(ctx context.Context) error {
		return second(living.Clone(ctx, in("living", "living", deleteData), v.Handle))
	})
	last := w.make(in("last", "last", deleteData))
	w.must(w.Delete(t.Context(), last.Handle)) // wakes the janitor
	w.eventually("a sign of life after the janitor's look",
		func() bool { w.wakeJanitors(); return w.timePasses(w.copies.pace.patience) })
	w.eventually("removing the draft of the dead", func() bool { w.wakeJanitors(); return len(w.tokens()) == 1 })
	g.open()
	w.ask("finishing", func() error {
		_, err := living.Clone(t.Context(), in("living", "living", deleteData), v.Handle)
		return err
	})
	w.must(dead.Process.Signal(unix.SIGCONT))
	w.must(dead.Wait())
	if answer := dead.Stdout.(*bytes.Buffer).String(); strings.Contains(answer, "<nil>") {
		t.Errorf("without its draft a controller says that it has made the volume: %s", answer)
	}
	if contents(t, w.path("living")) != contents(t, w.path(sourceName)) {
		t.Error("the clone is not what its source is")
	}
	w.tidy(2, 0)
}
