package nfs

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// says writes a record with the given onDelete and time of writing.
func (w *world) says(r *record, at buried, onDelete string, when time.Time) {
	w.Helper()
	said := *r
	said.OnDelete = onDelete
	data, err := said.encode()
	w.must(err)
	place := share.At(at.folder, at.name)
	w.write(string(data), place)
	w.must(os.Chtimes(w.path(place), when, when))
}

// A look has found that a burial is younger than the record with the usual name, and is stopped before it replaces it.
// Meanwhile another look gives that name to a burial that is younger than both. It stays.
func TestNoRecordIsMovedOverAYounger(t *testing.T) {
	d := newDeposed(t)
	spec := onSlow("one")
	r := d.recordOf(d.make(spec))
	d.nodeOnly = true // No process looks by itself.
	d.reopen()
	begun := time.Now()
	usual := buried{share.Trash, r.key() + suffix}
	burial, younger := buried{share.Burials, burialOf(r.key())}, buried{share.Burials, burialOf(r.key())}
	d.says(r, usual, deleteData, begun)
	d.says(r, burial, archiveData, begun.Add(time.Second))
	d.must(os.Remove(d.path(share.HomeName, share.Volumes, r.ID+suffix)))
	stopped := d.overtaken(1, func(e *controllerSide) error {
		_, h := (&world{TB: t, controllerSide: e}).opened(spec)
		return lay(h, burial)
	}, func() {
		d.says(r, younger, retainData, begun.Add(2*time.Second))
		_, h := d.opened(spec)
		d.must(lay(h, younger))
	})
	if !stopped {
		t.Fatal("the look came to no change: nothing was tested")
	}
	_, h := d.opened(spec)
	if last, err := read(h, usual.folder, usual.name); err != nil || last.OnDelete != retainData {
		t.Errorf("the record in the trash is %+v (%v), want the one that says %q", last, err, retainData)
	}
	if left, err := os.ReadDir(d.path(share.HomeName, share.Burials)); err != nil || len(left) > 0 {
		t.Errorf("among the burials there is %v (%v), want nothing", left, err)
	}
}

// If a look is stopped while it has the older record aside, at any step, the next look repairs the result.
func TestLooksThatStopInTheMidst(t *testing.T) {
	d := newDeposed(t)
	spec := onSlow("one")
	r := d.recordOf(d.make(spec))
	d.nodeOnly = true
	d.reopen()
	d.must(os.Remove(d.path(share.HomeName, share.Volumes, r.ID+suffix)))
	begun, usual := time.Now(), buried{share.Trash, r.key() + suffix}
	for n := 1; ; n++ {
		burial := buried{share.Burials, burialOf(r.key())}
		d.says(r, usual, deleteData, begun)
		d.says(r, burial, retainData, begun.Add(time.Second))
		stopped := d.overtaken(n, func(e *controllerSide) error {
			_, h := (&world{TB: t, controllerSide: e}).opened(spec)
			return lay(h, burial)
		}, func() {
			_, h := d.opened(spec)
			d.must(d.layEverywhere(h, r.ID))
		})
		_, h := d.opened(spec)
		d.must(d.layEverywhere(h, r.ID))
		if last, err := read(h, usual.folder, usual.name); err != nil || last.OnDelete != retainData {
			t.Errorf("change %d: the record in the trash is %+v (%v), want the one that says %q", n, last, err, retainData)
		}
		if left, err := os.ReadDir(d.path(share.HomeName, share.Burials)); err != nil || len(left) > 0 {
			t.Errorf("change %d: among the burials there is %v (%v), want nothing", n, left, err)
		}
		if !stopped {
			if least := 4; n-1 < least {
				t.Errorf("a look came to %d changes, want %d at least", n-1, least)
			}
			return
		}
	}
}

// The record of an item that is to be removed is aside for a moment. A process that does not find it does not continue
// as if it had been disposed of.
func TestNothingIsDisposedOfWithoutItsRecord(t *testing.T) {
	w := newWorld(t)
	spec := in("one", "dir/one", deleteData)
	r := w.recordOf(w.make(spec))
	w.nodeOnly = true
	w.reopen()
	s, h := w.opened(spec)
	w.must(os.Remove(w.path(share.HomeName, share.Volumes, r.ID+suffix)))
	w.noticed()
	if err := w.dispose(s, h, r); !errors.Is(err, errNotThere) {
		t.Errorf("disposing of it: %v, want that its record is not there", err)
	}
	if _, err := os.Stat(w.path("dir", "one")); err != nil {
		t.Errorf("its directory: %v", err)
	}
}
