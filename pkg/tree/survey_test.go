package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/testfs"
)

// A Look finds the most recently changed entries among any number of entries, and the disk usage.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 * batch {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), make([]byte, 4096), 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "deep", "er"), 0o755))
	<-time.After(20 * time.Millisecond) // longer than a step of any filesystem's clock
	must(t, os.WriteFile(filepath.Join(dir, "deep", "er", "log"), make([]byte, 4096), 0o600))
	src, err := os.Open(dir)
	must(t, err)
	defer src.Close()
	found, err := Look(t.Context(), src, Instant{})
	must(t, err)
	if found.Bytes < (3*batch+1)*4096 || len(found.Recent) != recent || !slices.Contains(found.Recent[:2], "deep/er/log") {
		t.Errorf("found %d bytes and, as the latest entries, %q", found.Bytes, found.Recent)
	}
	<-time.After(20 * time.Millisecond)
	must(t, os.Chmod(dir, 0o700))
	var stat unix.Stat_t
	must(t, unix.Stat(dir, &stat))
	since := Instant{stat.Ctim, time.Now()}
	since.At.Nsec++ // just after the last change
	must(t, Unchanged(src, found.Recent, since))
	if _, err := Look(t.Context(), src, since); err != nil {
		t.Errorf("a tree that nobody has changed: %v", err)
	}
	<-time.After(20 * time.Millisecond)
	log := filepath.Join(dir, "deep", "er", "log")
	for _, change := range []func() error{
		func() error { return os.WriteFile(log, []byte("more"), 0o600) },
		func() error { return os.Remove(log) },
	} {
		must(t, change())
		if err := Unchanged(src, found.Recent, since); !errors.Is(err, ErrChanged) ||
			!strings.Contains(err.Error(), "deep/er") {
			t.Errorf("got %v, want that deep/er/log has changed", err)
		}
		if _, err := Look(t.Context(), src, since); !errors.Is(err, ErrChanged) {
			t.Errorf("a look finds %v, want that something has changed", err)
		}
	}
}

// TestMeasureLeavesOutWhatIsHidden measures as a user whom a server maps to nobody.
func TestMeasureLeavesOutWhatIsHidden(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	for _, path := range []string{"seen", "hidden/file", "closed/file", "after/file"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, path), make([]byte, 4096), 0o600))
	}
	must(t, os.Chmod(filepath.Join(dir, "hidden"), 0))
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0o444)) // its names can be read, but nothing else
	src, err := os.Open(dir)
	must(t, err)
	defer src.Close()
	want := taken(t, dir, "", "seen", "hidden", "closed", "after", "after/file")
	as(t, 65534, func() {
		bytes, err := Measure(t.Context(), src)
		if err != nil || bytes != want {
			t.Errorf("measured %d bytes, %v; want %d of two files and the directories", bytes, err, want)
		}
		if _, err := Look(t.Context(), src, Instant{}); !errors.Is(err, os.ErrPermission) {
			t.Errorf("a copy of it begins with %v, want a refusal", err)
		}
	})
}

// taken returns the disk usage of a directory's entries.
func taken(t *testing.T, dir string, entries ...string) (sum int64) {
	t.Helper()
	for _, entry := range entries {
		var stat unix.Stat_t
		must(t, unix.Lstat(filepath.Join(dir, entry), &stat))
		sum += stat.Blocks * blockSize
	}
	return sum
}

// TestMeasureCountsWhatIsTaken measures the disk usage: each block counts once, however many names it has.
func TestMeasureCountsWhatIsTaken(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600))
	for _, name := range []string{"again", "a/once more", "a/b/fourth"} {
		must(t, os.Link(filepath.Join(dir, "file"), filepath.Join(dir, name)))
	}
	must(t, os.Symlink(strings.Repeat("x", 3000), filepath.Join(dir, "link")))
	want := taken(t, dir, "", "a", "a/b", "file", "link")
	src, err := os.Open(dir)
	must(t, err)
	defer src.Close()
	if bytes, err := Measure(t.Context(), src); err != nil || bytes != want {
		t.Errorf("measured %d bytes, %v; want %d", bytes, err, want)
	}
	if found, err := Look(t.Context(), src, Instant{}); err != nil || found.Bytes != 4<<20 {
		t.Errorf("a copy of it comes to %d bytes, %v; want those of four files", found.Bytes, err)
	}
}

// TestMeasureLeavesOutMounts measures a tree with a mount inside, which belongs to others.
func TestMeasureLeavesOutMounts(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "theirs"), make([]byte, 1<<20), 0o600))
	want := taken(t, dir, "")
	for _, name := range []string{"a", "mounted", "z"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name, "file"), make([]byte, 4096), 0o600))
		if name != "mounted" {
			want += taken(t, dir, name, filepath.Join(name, "file"))
		}
	}
	testfs.NeedRoot(t)
	testfs.Bind(t, other, filepath.Join(dir, "mounted"))
	src, err := os.Open(dir)
	must(t, err)
	defer src.Close()
	if bytes, err := Measure(t.Context(), src); err != nil || bytes != want {
		t.Errorf("measured %d bytes, %v; want %d", bytes, err, want)
	}
}

// ending is a context that ends after it was asked a given number of times.
type ending struct {
	context.Context //nolint:containedctx // It is one.
	left            int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestMeasureEndsInTime measures a tree for which there is no time: the sum so far is returned all the same.
func TestMeasureEndsInTime(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 4096), 0o600))
	}
	src, err := os.Open(dir)
	must(t, err)
	defer src.Close()
	bytes, err := Measure(&ending{t.Context(), 50}, src)
	if !errors.Is(err, context.DeadlineExceeded) || bytes != 50*4096+taken(t, dir, "") {
		t.Errorf("measured %d bytes, %v; want those of the first 50 files, and the context's end", bytes, err)
	}
}

// as runs a function as another user, on a thread that ends with it.
func as(t *testing.T, uid int, run func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // It is never unlocked: nobody else gets the thread.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			t.Errorf("becoming user %d: %v", uid, errno)
			return
		}
		run()
	}()
	<-done
}
