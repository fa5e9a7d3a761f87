package nfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// twoVolumes makes volumes with a file each.
func (w *world) twoVolumes() (handles []string) {
	w.Helper()
	for _, name := range []string{"one", "two"} {
		handles = append(handles, w.make(in(name, name, deleteData)).Handle)
		w.write("first", name, "file")
	}
	return handles
}

// begin reserves a group as a process does that is killed before it has copied anything.
func (w *world) begin(spec backends.GroupSpec) {
	w.Helper()
	w.making(spec.Volumes, func(m *making) {
		r, err := m.plannedGroup(w.Context(), spec)
		w.must(err)
		_, err = m.reserve(w.Context(), r)
		w.must(err)
	})
}

// making calls f with what the calls that make a group have.
func (w *world) making(volumes []string, f func(*making)) {
	w.Helper()
	hd, err := w.shareOf(volumes)
	w.must(err)
	s, release, err := w.pool.Hold(w.Context(), hd.address)
	w.must(err)
	defer release()
	h, err := w.homeOf(s, hd)
	w.must(err)
	f(&making{engine: w.engine, share: s, home: h, place: place{hd.address, hd.share}})
}

// A group that is gone on with is of the instant at which it was begun, or it is given up as a whole.
func TestGroupKeepsItsInstant(t *testing.T) {
	w := newWorld(t)
	spec := backends.GroupSpec{Name: "g", Volumes: w.twoVolumes()}
	w.noticed()
	w.begin(spec)
	w.write("second", "two", "file")
	w.reopen()
	_, err := w.CreateGroup(w.Context(), spec)
	w.fails("a group with a volume that was written to since it was begun", err, backends.InUse, "written to")
	w.tidy(2, 0)
	_, err = w.FindGroup(w.Context(), spec.Name)
	w.fails("finding it then", err, backends.NotFound)
	w.noticed()
	w.ask("beginning again", func() error { _, err := w.CreateGroup(w.Context(), spec); return err })
	g, err := w.FindGroup(w.Context(), spec.Name)
	w.must(err)
	w.tidy(2, 2)
	for i, want := range []string{"first", "second"} {
		restored, err := w.Restore(w.Context(), in("restored "+want, "restored-"+want, deleteData), g.Snapshots[i].Handle)
		w.must(err)
		if data, err := os.ReadFile(w.path(restored.Attributes["subDir"], "file")); err != nil || string(data) != want {
			t.Errorf("member %d has %q (%v), want %q", i, data, err, want)
		}
	}
	w.must(w.DeleteGroup(w.Context(), g.Handle))
	w.tidy(4, 0)
}

// What was made of a group that was given up is not taken for a part of a later one of its name, and does not stay.
func TestGroupThatWasGivenUp(t *testing.T) {
	w := newWorld(t)
	volumes := w.twoVolumes()
	w.noticed()
	w.ask("making it", func() error {
		_, err := w.CreateGroup(w.Context(), backends.GroupSpec{Name: "g", Volumes: volumes})
		return err
	})
	g, err := w.FindGroup(w.Context(), "g")
	w.must(err)
	// The group's own record has gone to the trash, and the process was killed before it went on.
	records, err := filepath.Glob(w.path(share.HomeName, share.Groups, "*.json"))
	w.must(err)
	r, err := os.ReadFile(records[0])
	w.must(err)
	group, err := decodeRecord(r, "")
	w.must(err)
	w.must(os.Rename(records[0], w.path(share.HomeName, share.Trash, group.key()+suffix)))
	w.reopen()
	_, err = w.GetSnapshot(w.Context(), g.Snapshots[0].Handle)
	w.fails("a member whose group is gone", err, backends.NotFound)
	if left, _, err := w.ListSnapshots(w.Context(), "", backends.Page{}); len(left) != 0 || err != nil {
		t.Errorf("without the group there are the snapshots %v (%v)", left, err)
	}
	w.ask("making it again", func() error {
		_, err := w.CreateGroup(w.Context(), backends.GroupSpec{Name: "g", Volumes: volumes})
		return err
	})
	w.ask("waking the janitor", func() error { return w.Delete(w.Context(), w.make(in("last", "last", deleteData)).Handle) })
	w.tidy(2, 2)
	again, err := w.FindGroup(w.Context(), "g")
	w.must(err)
	for _, s := range again.Snapshots {
		_, err := w.GetSnapshot(w.Context(), s.Handle)
		w.must(err)
	}
}

// A controller that was slow finds its group given up by another one, and leaves none of the snapshots it has made since.
func TestGroupGivenUpByAnother(t *testing.T) {
	w := newWorld(t)
	spec := backends.GroupSpec{Name: "g", Volumes: w.twoVolumes()}
	w.noticed()
	w.making(spec.Volumes, func(slow *making) {
		r, err := slow.plannedGroup(w.Context(), spec)
		w.must(err)
		_, err = slow.reserve(w.Context(), r)
		w.must(err)
		w.making(spec.Volumes, func(other *making) { w.must(other.abandon(w.Context(), r)) })
		w.ask("building", func() error { return slow.buildGroup(w.Context(), r) })
		w.fails("finishing it", slow.commit(r), backends.Busy, "given it up")
	})
	w.tidy(2, 0)
}

// A group's record holds all of its members, however long their names are.
func TestLargestGroup(t *testing.T) {
	r := record{Kind: groupKind}
	for range maxMembers {
		r.Members = append(r.Members, member{ID: strings.Repeat("f", 32), Volume: strings.Repeat("v", maxHandle)})
	}
	if data, err := r.encode(); err != nil || len(data) > share.MaxRecord {
		t.Errorf("the record of %d members has %d bytes (%v), and %d are read", maxMembers, len(data), err, share.MaxRecord)
	}
	w := newWorld(t)
	_, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: make([]string, maxMembers+1)})
	w.fails("a group that is too large", err, backends.Invalid, "256")
}

func TestGroupsAreOfOneShare(t *testing.T) {
	w := newWorld(t)
	w.must(os.MkdirAll(filepath.Join(filepath.Dir(w.root), "other"), 0o755))
	one := w.make(in("one", "one", deleteData))
	elsewhere := in("two", "two", deleteData)
	elsewhere.Parameters.(*Parameters).Share = "/other"
	two := w.make(elsewhere)
	_, err := w.CreateGroup(w.Context(), backends.GroupSpec{Name: "g", Volumes: []string{one.Handle, two.Handle}})
	w.fails("a group of two shares", err, backends.Invalid, "/export", "/other")
}
