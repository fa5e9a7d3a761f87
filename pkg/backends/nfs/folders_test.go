package nfs

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// The folder of the records is missing. No volume is absent for that, nothing is deleted, and nothing is created in its
// place.
func TestMissingRecordsAreNoAbsence(t *testing.T) {
	spec := in("one", "dir/one", deleteData)
	for name, call := range map[string]func(w *world, r *record) error{
		"getting":  func(w *world, r *record) error { return second(w.Get(t.Context(), r.Handle)) },
		"finding":  func(w *world, _ *record) error { return second(w.Find(t.Context(), spec)) },
		"deleting": func(w *world, r *record) error { return w.Delete(t.Context(), r.Handle) },
		"making":   func(w *world, _ *record) error { return second(w.Create(t.Context(), spec)) },
		"another with its directory": func(w *world, _ *record) error {
			return second(w.Create(t.Context(), in("two", "dir/one", deleteData)))
		},
		"listing": func(w *world, _ *record) error {
			_, _, err := w.List(t.Context(), backends.Page{})
			return err
		},
		"mounting": func(w *world, r *record) error {
			return second(w.node.Source(t.Context(), backends.Attachment{Handle: r.Handle}))
		},
		"dropping its claim": func(w *world, r *record) error {
			s, h := w.opened(spec)
			return w.unclaimDead(s, h, claimOf(r.SubDir), r.key())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.recordOf(w.make(spec))
			w.quiet(spec)
			volumes := w.path(share.HomeName, share.Volumes)
			w.must(os.Rename(volumes, volumes+".aside"))
			w.noticed()
			for range 2 { // A controller that has just started turns the first call away.
				if err := call(w, r); !backends.Is(err, backends.Busy) {
					w.fails("the call", err, backends.Unavailable, share.At(share.Volumes, ""))
				}
			}
			if w.IsAbsent(t.Context(), spec) {
				t.Error("without the folder it is absent")
			}
			w.must(os.Rename(volumes+".aside", volumes))
			w.noticed()
			w.isWhole(spec, r)
		})
	}
}

// The folder of the snapshots goes missing after a snapshot and a group were deleted. Their data is not gone, and their
// records stay until the folder is back and the data is removed.
func TestDeletedSnapshotsWaitForTheirFolder(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	s, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	w.must(err)
	g, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}})
	w.must(err)
	w.quiet(specOf("one"))
	on, h := w.opened(specOf("one"))
	for k, handle := range map[kind]string{snapshotKind: s.Handle, groupKind: g.Handle} {
		r, err := inPlace(h, k, idOf(t, k, handle))
		w.must(err)
		w.must(w.bury(h, r)) // The process ends after that.
	}
	folder := w.path(share.HomeName, share.Snapshots)
	w.must(os.Rename(folder, folder+".aside"))
	w.noticed()
	w.fails("removing them", w.janitors.trash(on, h), backends.Unavailable, share.At(share.Snapshots, ""))
	w.must(os.Rename(folder+".aside", folder))
	w.noticed()
	w.janitors.add(h.Address())
	w.tidy(1, 0)
}

// A folder of records goes missing while it is listed. The records that cannot be read then are not gone.
func TestRecordsThatGoMissingInAList(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	_, h := w.opened(specOf("one"))
	volumes := w.path(share.HomeName, share.Volumes)
	w.must(os.Rename(volumes, volumes+".aside"))
	w.noticed()
	l := survey{home: h, shown: h, kind: volumeKind}
	_, err := l.listed(idOf(t, volumeKind, v.Handle))
	w.fails("a record that was listed", err, backends.Unavailable, share.At(share.Volumes, ""))
	w.must(os.Rename(volumes+".aside", volumes))
}

// A folder that loses no item is missing, as after the restore of a backup that leaves out empty folders. It is created
// again, and stops no call for long.
func TestEmptyFoldersAreMadeAgain(t *testing.T) {
	for _, folder := range []string{share.Trash, share.Burials, share.Staging, share.Making, share.Retained} {
		t.Run(folder, func(t *testing.T) {
			w, _ := watched(t)
			v := w.make(in("one", "dir/one", retainData))
			w.must(w.Delete(t.Context(), w.make(in("zero", "dir/zero", deleteData)).Handle))
			w.eventually("the end of the janitor's work", w.idle)
			path := w.path(share.HomeName, folder)
			w.must(os.RemoveAll(path))
			w.noticed()
			w.ask("making another", func() error { return second(w.Create(t.Context(), specOf("two"))) })
			w.ask("deleting", func() error { return unless(w.Delete(t.Context(), v.Handle), backends.NotFound) })
			w.eventually("making the folder again", func() bool { _, err := os.Stat(path); return err == nil })
			w.eventually("the end of the janitor's work", w.idle)
			if _, err := os.Stat(w.path("dir", "one")); err != nil {
				t.Errorf("the retained directory: %v", err)
			}
		})
	}
}

// The folder of the claims is created again only on a share without volumes, and without deleted ones whose directories
// are in their places: otherwise it was not empty. Other folders are created all the same.
func TestLostClaimsAreNotMadeEmpty(t *testing.T) {
	w, h := watched(t)
	v := w.make(in("one", "dir/one", deleteData))
	claims := w.path(share.HomeName, share.Claims)
	w.must(os.Rename(claims, claims+".aside"))
	w.must(os.RemoveAll(w.path(share.HomeName, share.Retained)))
	refused := func(what string) {
		w.noticed()
		w.fails(what, makeFolders(h), backends.Unavailable, share.At(share.Claims, ""), "restore it")
		if _, err := os.Stat(claims); !os.IsNotExist(err) {
			t.Errorf("%s: the folder of the claims: %v", what, err)
		}
	}
	refused("with a volume")
	if _, err := os.Stat(w.path(share.HomeName, share.Retained)); err != nil {
		t.Errorf("the other folder: %v", err)
	}
	w.must(w.Delete(t.Context(), v.Handle))
	refused("with a deleted volume")
	w.must(os.Rename(claims+".aside", claims))
	w.noticed()
	w.janitors.add(h.Address())
	w.tidy(0, 0)
	if _, err := os.Stat(w.path("dir", "one")); !os.IsNotExist(err) {
		t.Errorf("the directory of the deleted volume: %v", err)
	}
	w.eventually("the end of the janitor's work", w.idle)
	w.must(os.Remove(claims))
	w.noticed()
	w.must(makeFolders(h))
	if _, err := os.Stat(claims); err != nil {
		t.Errorf("without volumes, the folder of the claims: %v", err)
	}
}

// Without the folder of the groups, volumes that no group has are copied all the same.
func TestCopiesNeedNoGroups(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	w.must(os.Remove(w.path(share.HomeName, share.Groups)))
	w.noticed()
	w.ask("cloning", func() error { return second(w.Clone(t.Context(), specOf("two"), v.Handle)) })
	_, err := w.FindGroup(t.Context(), "g")
	w.fails("finding a group", err, backends.Unavailable, share.At(share.Groups, ""))
}
