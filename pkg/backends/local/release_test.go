package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// A long copy of a volume does not delay the repair of others in its pool, whatever is noted about its release.
func TestMendingWaitsForNoCopy(t *testing.T) {
	for _, pool := range []string{"image", "directory"} {
		for _, boot := range []string{"", "an earlier boot"} {
			t.Run(pool+" "+boot, func(t *testing.T) {
				f := newFixture(t)
				copied, err := f.stock.volumes.get(f.create(pool, "copied").Handle)
				must(t, err)
				frozen, err := f.stock.volumes.get(f.create(pool, "frozen").Handle)
				must(t, err)
				handle := copied.record.Load().Handle
				must(t, durable.MakeAll(f.releasedNotes(), 0o700))
				if boot == "" {
					must(t, inUseNote.set(copied.dir, f.boot))
					f.noteReleased(handle)
					copied.released.Store(true)
				} else {
					must(t, note(handle).set(f.releasedNotes(), boot))
				}
				frozen.frozen.Store(true)
				release, err := copied.own(t.Context())
				must(t, err)
				f.mendsInTime()
				release()
				if frozen.frozen.Load() {
					t.Error("another volume counts as frozen still")
				}
				f.mendsInTime()
				if _, err := os.Readlink(filepath.Join(copied.dir, string(inUseNote))); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the note of its use: %v, want %v", err, fs.ErrNotExist)
				}
				if copied.released.Load() {
					t.Error("once it is copied, the note of its release is still there")
				}
			})
		}
	}
}

// mendsInTime calls mend and checks that it does not wait.
func (f *fixture) mendsInTime() {
	f.Helper()
	mended := make(chan struct{})
	go func() {
		defer close(mended)
		f.mend()
	}()
	select {
	case <-mended:
	case <-time.After(patience):
		f.Fatalf("the pools are not mended after %v", patience)
	}
}

// A note of a release is not valid in the next boot, and is removed.
func TestReleasesOfEarlierBootsAreForgotten(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	now, earlier := note(v.Handle), note(handleOf(volumePrefix, "another"))
	f.noteReleased(v.Handle)
	must(t, earlier.set(f.releasedNotes(), "an earlier boot"))
	must(t, inUseNote.set(f.dir(v.Handle), f.boot))
	f.reopen()
	if _, err := os.Readlink(filepath.Join(f.releasedNotes(), string(earlier))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the note of an earlier boot: %v, want %v", err, fs.ErrNotExist)
	}
	if held, err := now.holds(f.releasedNotes(), f.boot); err != nil || !held || f.Used(t.Context(), v.Handle) {
		t.Errorf("the note of this boot is there: %t, %v; and it is believed: %t", held, err,
			!f.Used(t.Context(), v.Handle))
	}
}

// A pool is lost while it is served, and its volumes go out of use. When it is back, it has its old notes again. They
// are ignored, whenever the driver is restarted, and however often a deletion was tried meanwhile.
func TestReleaseWhileThePoolIsLost(t *testing.T) {
	for _, mounted := range []bool{false, true} {
		for _, mended := range []bool{false, true} {
			t.Run(fmt.Sprintf("below is another directory %t, mended %t", mounted, mended), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "pool")
				f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: path})
				v := f.create("disk", "one")
				f.use(v.Handle)
				must(t, os.Rename(path, path+".away"))
				if mounted {
					must(t, os.Mkdir(path, 0o700))
				}
				must(t, f.Release(t.Context(), v.Handle))
				for range 2 {
					hasKind(t, "Delete", f.Delete(t.Context(), v.Handle), backends.Unavailable, path)
				}
				must(t, errors.Join(os.RemoveAll(path), os.Rename(path+".away", path)))
				if mended {
					f.mend()
				}
				f.reopen()
				if f.Used(t.Context(), v.Handle) {
					t.Error("it counts as in use")
				}
				must(t, f.Delete(t.Context(), v.Handle))
				if left, err := filepath.Glob(filepath.Join(f.releasedNotes(), "*")); err != nil || len(left) != 0 {
					t.Errorf("notes of releases are left: %q, %v", left, err)
				}
			})
		}
	}
}
