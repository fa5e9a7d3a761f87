package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// laidOut waits until a janitor has checked the whole trash, and stops all further looks.
func (w *world) laidOut() {
	w.Helper()
	_, h := w.opened(specOf("x"))
	w.eventually("a look at the whole trash", func() bool { return w.laid.on(h) })
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	w.must(w.janitors.close(ctx))
}

// However much is in the trash, creating and removing items does not list its names. The names of the burials, which
// are few, are listed a known number of times.
func TestCallsListNoTrash(t *testing.T) {
	w := newWorld(t)
	w.make(specOf("zero"))
	w.laidOut()
	trash, burials := opened(t, w.path(share.HomeName, share.Trash)), opened(t, w.path(share.HomeName, share.Burials))
	var v *backends.Volume
	var s *backends.Snapshot
	for _, row := range []struct {
		name string
		most int // looks at the burials
		call func() error
	}{
		{"creating", 2, func() (err error) { v, err = w.Create(t.Context(), specOf("one")); return err }},
		{"finding", 0, func() error { return second(w.Find(t.Context(), specOf("one"))) }},
		{"taking a snapshot", 2, func() (err error) {
			s, err = w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
			return err
		}},
		{"deleting the snapshot", 0, func() error { return w.DeleteSnapshot(t.Context(), s.Handle) }},
		{"deleting", 1, func() error { return w.Delete(t.Context(), v.Handle) }},
	} {
		w.must(row.call())
		listed, _ := trash()
		looks, _ := burials()
		if listed > 0 || looks > row.most {
			t.Errorf("%s lists the trash %d times and the burials %d times, want never and %d times at most", row.name, listed,
				looks, row.most)
		}
	}
}

// A share of an earlier version of the driver has no folder for burials. The first deletion, or the janitor's first
// look, creates it. Without room for one, deleted items move to the trash at once.
func TestShareWithoutBurials(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	folder := w.path(share.HomeName, share.Burials)
	w.nodeOnly = true
	w.reopen()
	w.must(os.Remove(folder))
	w.must(w.Delete(t.Context(), v.Handle))
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	w.tidy(0, 0)
	w.must(os.Remove(folder))
	s, h := w.opened(specOf("x"))
	w.must(w.janitors.trash(s, h))
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("after the janitor's look: %v", err)
	}
}

// On a full share nothing can be created, but everything can be deleted.
func TestFullShareWithoutBurials(t *testing.T) {
	w := newWorld(t)
	w.must(unix.Mount("few", w.root, "tmpfs", 0, "nr_inodes=64"))
	t.Cleanup(func() { w.must(unix.Unmount(w.root, unix.MNT_DETACH)) })
	spec := in("one", "dir/one", deleteData)
	w.quiet(spec)
	v := w.make(spec)
	w.must(os.Remove(w.path(share.HomeName, share.Burials)))
	var err error
	for n := 0; err == nil; n++ {
		err = os.WriteFile(w.path(fmt.Sprint("filler", n)), nil, 0o600)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	_, h := w.opened(spec)
	w.laid.note(h, nil)
	w.must(w.janitors.lay(h))
	if w.laid.on(h) {
		t.Error("burials are looked for on a share that has no room for them")
	}
	w.must(w.Delete(t.Context(), v.Handle))
	w.fails("finding it", second(w.Find(t.Context(), spec)), backends.NotFound)
	if _, err := os.Stat(w.path("dir", "one")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
	w.shut()
}

// The folder of the burials existed and is gone. So this is no share of an earlier version, and a record that may have
// been in it is not absent. The janitor creates it again.
func TestMissingBurialsAreNoAbsence(t *testing.T) {
	spec := in("one", "dir/one", deleteData)
	for name, call := range map[string]func(w *world, now *record) error{
		"finding":  func(w *world, _ *record) error { return second(w.Find(t.Context(), spec)) },
		"deleting": func(w *world, now *record) error { return w.Delete(t.Context(), now.Handle) },
		"dropping its claim": func(w *world, now *record) error {
			s, h := w.opened(spec)
			return w.unclaimDead(s, h, claimOf("dir/one"), now.key())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := watched(t)
			now := w.recordOf(w.make(spec))
			earlier := *now
			earlier.Turn = "0123456789abcdef"
			w.misplaced(now, &earlier, false)
			burials := w.path(share.HomeName, share.Burials)
			w.must(os.Rename(burials, burials+".aside"))
			w.noticed()
			w.fails("the call", call(w, now), backends.Unavailable, share.At(share.Burials, ""))
			w.eventually("making the folder again", func() bool { _, err := os.Stat(burials); return err == nil })
		})
	}
}

// The folder of the trash is gone. A deletion does not report success until there is one again.
func TestDeletionWithoutATrash(t *testing.T) {
	w, _ := watched(t)
	v := w.make(in("one", "dir/one", deleteData))
	w.must(os.Remove(w.path(share.HomeName, share.Trash)))
	w.noticed()
	w.fails("deleting", w.Delete(t.Context(), v.Handle), backends.Unavailable, share.At(share.Trash, ""))
	w.ask("deleting", func() error { return unless(w.Delete(t.Context(), v.Handle), backends.NotFound) })
	w.tidy(0, 0)
	if _, err := os.Stat(w.path("dir", "one")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}

// After the trash was checked, a record that a late deletion of this version moves away is still not absent. A late
// deletion of an earlier version, which may be stopped for as long, does not make a deletion report that nothing
// exists, and nothing is proven.
func TestMovedAfterTheTrashWasLookedAt(t *testing.T) {
	w := newWorld(t)
	spec := in("one", "dir/one", deleteData)
	v := w.make(spec)
	w.laidOut()
	now := w.recordOf(v)
	earlier := *now
	earlier.Turn = "0123456789abcdef"
	w.misplaced(now, &earlier, false)
	w.fails("finding it", second(w.Find(t.Context(), spec)), backends.Busy, errReplaced.Error())
	w.isWhole(spec, now)
	w.misplaced(now, &earlier, true)
	w.fails("deleting it", w.Delete(t.Context(), v.Handle), backends.Busy, errReplaced.Error())
	w.isWhole(spec, now)
	w.misplaced(now, &earlier, true)
	if w.IsAbsent(t.Context(), spec) {
		t.Error("what was moved away is absent")
	}
	w.isWhole(spec, now)
}

// A record was moved away and cannot be read there, so its owner is unknown. No call acts on the absence of the record.
func TestUnreadableBurialIsNoAbsence(t *testing.T) {
	spec := in("one", "dir/one", deleteData)
	for name, spoil := range damages() {
		if name == "another handle" { // It is put back, and is unusable there.
			continue
		}
		for _, earlierVersion := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", of an earlier version: ", earlierVersion), func(t *testing.T) {
				w := newWorld(t)
				earlier, now := w.remade(spec)
				w.misplaced(now, earlier, earlierVersion)
				moved := w.path(share.HomeName, share.Trash, earlier.key()+suffix)
				if all, err := filepath.Glob(w.path(share.HomeName, share.Burials, "*")); err == nil && len(all) == 1 {
					moved = all[0]
				}
				w.must(spoil(moved))
				w.noticed()
				s, h := w.opened(spec)
				for what, call := range map[string]func() error{
					"deleting": func() error { return w.Delete(t.Context(), now.Handle) },
					"finding":  func() error { return second(w.Find(t.Context(), spec)) },
					"making":   func() error { return second(w.Create(t.Context(), spec)) },
					"another with its directory": func() error {
						return second(w.Create(t.Context(), in("two", "dir/one", deleteData)))
					},
					"dropping its claim": func() error { return w.unclaimDead(s, h, claimOf("dir/one"), now.key()) },
				} {
					w.fails(what, call(), backends.Unavailable, path.Base(moved), "readable")
				}
			})
		}
	}
}

// A record in the trash cannot be read. That concerns calls for the ID in its name. They look at the whole trash until
// it is gone or can be read; other calls do not.
func TestUnreadableTrashConcernsItsOwnIDOnly(t *testing.T) {
	w := newWorld(t)
	spec := in("bad", "dir/bad", deleteData)
	w.quiet(spec)
	now := w.recordOf(w.make(spec))
	earlier := *now
	earlier.Turn = "0123456789abcdef"
	w.misplaced(now, &earlier, true)
	moved := w.path(share.HomeName, share.Trash, earlier.key()+suffix)
	kept, err := os.ReadFile(moved)
	w.must(err)
	w.must(os.Truncate(moved, 0))
	w.noticed()
	_, h := w.opened(spec)
	w.fails("a look of the janitor", w.janitors.lay(h), backends.Unavailable, earlier.key())
	trash := opened(t, w.path(share.HomeName, share.Trash))
	w.must(second(w.Create(t.Context(), specOf("one"))))
	if listed, _ := trash(); listed > 0 {
		t.Errorf("making another volume lists the trash %d times, want never", listed)
	}
	w.fails("finding it", second(w.Find(t.Context(), spec)), backends.Unavailable, earlier.key(), "readable")
	w.must(os.WriteFile(moved, kept, 0o600))
	w.noticed()
	w.ask("finding it again", func() error { return second(w.Find(t.Context(), spec)) })
	w.isWhole(spec, now)
	w.eventually("the end of the look that the failure has woken", w.idle)
	w.must(w.janitors.lay(h))
	if !w.laid.of(h, now.ID) {
		t.Error("after another look of the janitor there is still something that could not be laid")
	}
}

// A call finds a record that it cannot lay. The janitor is told, and tries again without any further call.
func TestWhatIsNotLaidWakesTheJanitor(t *testing.T) {
	w, _ := watched(t)
	spec := in("one", "dir/one", deleteData)
	now := w.recordOf(w.make(spec))
	earlier := *now
	earlier.Turn = "0123456789abcdef"
	w.misplaced(now, &earlier, false)
	all, err := filepath.Glob(w.path(share.HomeName, share.Burials, "*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("the burials are %q (%v), want one", all, err)
	}
	kept, err := os.ReadFile(all[0])
	w.must(err)
	w.must(os.Truncate(all[0], 0))
	w.noticed()
	if !w.idle() {
		t.Fatal("a janitor is at work, and nobody has called")
	}
	w.fails("finding it", second(w.Find(t.Context(), spec)), backends.Unavailable, "readable")
	if w.idle() {
		t.Error("no janitor is at work")
	}
	w.must(os.WriteFile(all[0], kept, 0o600))
	_, h := w.opened(spec)
	w.eventually("putting it back", func() bool { _, err := inPlace(h, volumeKind, now.ID); return err == nil })
	w.isWhole(spec, now)
}
