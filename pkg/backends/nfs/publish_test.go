package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// attempt begins an attempt at a volume, and leaves it when its draft is complete and its directory is claimed.
func (w *world) attempt(spec backends.Spec) (*making, *record) {
	w.Helper()
	m, r := w.planned(spec)
	w.must(m.draft(w.Context(), r))
	w.must(m.reserve(r))
	return m, r
}

// planned returns an attempt at a volume that has a permit, but no token yet.
func (w *world) planned(spec backends.Spec) (*making, *record) {
	w.Helper()
	m := w.making(spec, volumeCalls)
	id, err := m.home.ID(string(volumeKind), spec.Name)
	w.must(err)
	r, err := m.plan(spec, id)
	w.must(err)
	return m, r
}

// making returns an unfinished item on the share of a spec, with a permit for calls of a class.
func (w *world) making(spec backends.Spec, c class) *making {
	w.Helper()
	p, err := w.target(spec)
	w.must(err)
	s, h := w.opened(spec)
	m := &making{engine: w.engine, share: s, home: h, place: p}
	m.turn, err = w.lead(w.Context(), h, c, "a test's")
	w.must(err)
	return m
}

// halfPublished returns an attempt whose process ended between the link and the moves.
func (w *world) halfPublished(spec backends.Spec) (*making, *record) {
	w.Helper()
	m, r := w.attempt(spec)
	w.must(m.home.Publish(r.key()+suffix, share.Volumes, r.ID+suffix))
	return m, r
}

// The directories above a published volume are removed before it is in its place, and another volume gets one of them.
// The published one is taken back.
func TestPublishedWhereAnotherIsNow(t *testing.T) {
	w := newWorld(t)
	w.quiet(specOf("x"))
	m, r := w.halfPublished(in("one", "dir/sub/one", deleteData))
	w.must(os.RemoveAll(w.path("dir")))
	w.noticed()
	w.make(in("two", "dir", deleteData))
	w.fails("putting it in its place", w.putInPlace(m.share, m.home, r), backends.Invalid, "another volume")
	if _, err := inPlace(m.home, volumeKind, r.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its record: %v, want none", err)
	}
	w.must(m.home.Remove(share.Staging, r.key()+suffix))
	w.tidy(1, 0)
}

// The next process moves a published item to its place.
func TestPublishedAndNotYetInPlace(t *testing.T) {
	spec := in("one", "dir/one", deleteData)
	for name, next := range map[string]func(m *making, other *world, r *record) int{
		"the call is repeated": func(_ *making, other *world, _ *record) int {
			_, err := other.Create(t.Context(), spec)
			other.fails("creating again", err, backends.Exists)
			return 1
		},
		"the janitor comes": func(_ *making, other *world, _ *record) int {
			other.must(other.Delete(t.Context(), other.make(specOf("last")).Handle))
			other.eventually("putting it in its place",
				func() bool { _, err := os.Stat(other.path("dir", "one")); return err == nil })
			return 1
		},
		"its parent is removed, and the call is repeated": func(_ *making, other *world, _ *record) int {
			other.must(os.Remove(other.path("dir")))
			other.noticed()
			_, err := other.Create(t.Context(), spec)
			other.fails("creating again", err, backends.Exists)
			return 1
		},
		"it is deleted": func(_ *making, other *world, r *record) int {
			other.must(other.Delete(t.Context(), r.Handle))
			return 0
		},
		"it is deleted, and the first goes on": func(m *making, other *world, r *record) int {
			other.must(other.Delete(t.Context(), r.Handle))
			other.must(m.settle(m.share, m.home, r))
			return 0
		},
		"somebody else has taken the place": func(_ *making, other *world, _ *record) int {
			other.write("foreign", "dir", "one", "file")
			var err error
			other.eventually("the refusal", func() bool { // The janitor may be in the middle of it.
				_, err = other.Create(t.Context(), spec)
				return !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Exists)
			})
			other.fails("creating again", err, backends.Invalid, "another subDir")
			return -1
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m, r := w.halfPublished(spec)
			other := w.otherWorld()
			other.leads()
			left := next(m, other, r)
			if left >= 0 {
				w.tidy(left, 0)
			}
			if _, err := os.Stat(w.path("dir", "one")); (err == nil) != (left != 0) {
				t.Errorf("the directory: %v", err)
			}
		})
	}
}

// A process has made a directory writable for its move, and was killed before it gave the mode back.
func TestModeOfAnUnfinishedMove(t *testing.T) {
	spec := in("one", "dir/one", deleteData)
	for name, moved := range map[string]bool{"before the move": false, "after the move": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, r := w.halfPublished(spec)
			note := w.path(share.HomeName, share.Staging, r.key()+modeSuffix)
			at := w.path(share.HomeName, share.Staging, r.key())
			w.must(errors.Join(os.Symlink(fmt.Sprintf("2555 %d", inodeOf(t, at)), note), os.Chmod(at, 0o755|fs.ModeSetgid)))
			if moved {
				w.must(os.Rename(at, w.path("dir", "one")))
			}
			other := w.otherWorld()
			other.leads()
			_, err := other.Create(t.Context(), spec)
			other.fails("creating again", err, backends.Exists)
			info, err := os.Stat(w.path("dir", "one"))
			w.must(err)
			if want := fs.ModeDir | fs.ModeSetgid | 0o555; info.Mode() != want {
				t.Errorf("the directory has the mode %v, want %v", info.Mode(), want)
			}
			w.tidy(1, 0)
		})
	}
}

// inodeOf returns the inode number of a file.
func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Ino
}

// A process was stopped after it had read the note of a mode. By then the place is another volume's, which keeps its
// mode.
func TestModeIsGivenToNoOther(t *testing.T) {
	w := newWorld(t)
	w.quiet(specOf("x"))
	spec := in("one", "dir/one", deleteData)
	r := w.recordOf(w.make(spec))
	s, _ := w.opened(spec)
	note, place := w.path(share.HomeName, share.Staging, r.key()+modeSuffix), w.path("dir", "one")
	before, err := os.Stat(place)
	w.must(err)
	w.must(os.Symlink(fmt.Sprintf("0500 %d", inodeOf(t, place)+1), note))
	w.must(giveModeBack(s, r.parts()[0]))
	if now, err := os.Stat(place); err != nil || now.Mode() != before.Mode() {
		t.Errorf("the directory is %v (%v), want the mode %v", now, err, before.Mode())
	}
	if _, err := os.Lstat(note); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the note: %v", err)
	}
	for name, plant := range map[string]func() error{
		"a file":              func() error { return os.WriteFile(note, nil, 0o600) },
		"a link with no mode": func() error { return os.Symlink("elsewhere", note) },
		"one with no inode":   func() error { return os.Symlink("0500", note) },
	} {
		w.must(plant())
		w.noticed()
		w.fails(name, giveModeBack(s, r.parts()[0]), backends.Unusable, share.Staging, "remove it")
		w.must(os.Remove(note))
	}
}

// An attempt that has lost its token publishes nothing, even if nothing is in the way.
func TestAttemptWithoutItsToken(t *testing.T) {
	w := newWorld(t)
	spec := in("one", "dir/one", deleteData)
	m, r := w.attempt(spec)
	w.must(m.fence(m.share, m.home, r.ID, ""))
	w.fails("publishing", m.unlessFenced(r, m.publish(t.Context(), r)), backends.Busy, "ask again")
	w.ask("taking over the claim of the dead", func() error { // The janitor may be working on it.
		_, err := w.Create(t.Context(), in("two", "dir/one", deleteData))
		return err
	})
	w.tidy(1, 0)
	if _, err := w.Find(t.Context(), spec); !backends.Is(err, backends.NotFound) {
		t.Errorf("finding it: %v", err)
	}
}

// The claim of an attempt that is given up is dropped soon, even if it could not be dropped at once.
func TestClaimOfWhatWasGivenUp(t *testing.T) {
	w := newWorld(t)
	w.must(w.Delete(t.Context(), w.make(specOf("first")).Handle))
	w.eventually("the sweep at the start", w.idle)
	m, r := w.attempt(in("one", "dir/one", deleteData))
	rival := w.path(share.HomeName, share.Staging, r.key()+boxSuffix+"rival")
	w.must(os.MkdirAll(filepath.Join(rival, "busy"), 0o755))
	m.giveUp(m.share, m.home, r)
	w.must(os.RemoveAll(rival))
	w.tidy(0, 0)
}

// Unfinished items of an earlier version of the driver are given up, at whatever step they are.
func TestWhatEarlierVersionsWereMaking(t *testing.T) {
	for _, placed := range []bool{false, true} {
		w := newWorld(t)
		spec := in("one", "dir/one", retainData)
		m, r := w.attempt(spec)
		data, err := r.encode()
		w.must(err)
		w.must(m.home.WriteNew(share.Making, "volume-"+r.ID+suffix, data))
		w.must(m.home.Remove(share.Staging, r.key()+suffix))
		if placed {
			w.must(os.Rename(w.path(share.HomeName, share.Staging, r.key()), w.path("dir", "one")))
		}
		w.reopen()
		w.ask("making it", func() error { _, err := w.Create(t.Context(), spec); return err })
		w.tidy(1, 0)
		if _, err := os.Stat(w.path("dir", "one")); errors.Is(err, fs.ErrNotExist) {
			t.Error("the volume has no directory")
		}
	}
}

// The draft of an attempt with a token was removed by hand. The item is not published without its data.
func TestDraftThatSomebodyRemoved(t *testing.T) {
	w := newWorld(t)
	spec := in("one", "dir/one", deleteData)
	m, r := w.attempt(spec)
	w.must(os.RemoveAll(w.path(share.HomeName, share.Staging, r.key())))
	w.noticed()
	w.fails("publishing", m.orGivenUp(r, m.publish(t.Context(), r)), backends.Unavailable, r.key(), "ask again")
	w.make(spec)
	w.tidy(1, 0)
	if _, err := os.Stat(w.path("dir", "one")); err != nil {
		t.Errorf("the directory: %v", err)
	}
}

// The next call repeats a copy whose draft was removed by hand.
func TestCopyThatSomebodyRemoved(t *testing.T) {
	w := newWorld(t)
	spec := backends.SnapshotSpec{Name: "s", Volume: w.sourceOf(3).Handle}
	take := func(ctx context.Context) error { return second(w.CreateSnapshot(ctx, spec)) }
	g := w.gateAt(1)
	w.outlived(g, "a snapshot", take)
	g.open()
	w.eventually("the end of the copy", func() bool {
		w.copies.mu.Lock()
		defer w.copies.mu.Unlock()
		for _, j := range w.copies.jobs {
			select {
			case <-j.ended:
				return true
			default:
			}
		}
		return false
	})
	drafts, err := filepath.Glob(w.path(share.HomeName, share.Staging, "*-????????????????"))
	w.must(err)
	if len(drafts) != 1 {
		t.Fatalf("there are the drafts %q, want one", drafts)
	}
	w.must(os.RemoveAll(drafts[0]))
	w.noticed()
	w.fails("publishing it", take(t.Context()), backends.Unavailable, "ask again")
	w.ask("taking it once more", func() error { return take(t.Context()) })
	snapshots, err := filepath.Glob(w.path(share.HomeName, share.Snapshots, "*-*"))
	w.must(err)
	if len(snapshots) != 1 || contents(t, snapshots[0]) != contents(t, w.path(sourceName)) {
		t.Errorf("the snapshots %q are not what the volume is", snapshots)
	}
	w.tidy(1, 1)
}
