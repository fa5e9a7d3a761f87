package nfs

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/tests/stall"
)

// A deletion that was stopped moves the record of a volume that was created again. At that moment a janitor is about to
// remove the record of the earlier volume, which has that name in the trash. The volume stays, even if the janitor dies
// before it has looked.
func TestLateBurialKeepsTheNewVolume(t *testing.T) {
	for name, late := range map[string]func(w *world, earlier, now *record){
		"before the end": func(w *world, earlier, now *record) {
			w.must(os.Rename(w.path(share.At(share.Volumes, now.ID+suffix)),
				w.path(share.At(share.Trash, earlier.key()+suffix))))
			p, err := w.target(specOf("one"))
			w.must(err)
			s, release, err := w.pool.Hold(w.Context(), p.Address)
			w.must(err)
			defer release()
			h, err := s.Home(false)
			w.must(err)
			w.must(w.end(h, earlier.key(), false))
		},
		"and the janitor dies": func(w *world, earlier, now *record) {
			w.shut()
			w.must(os.Rename(w.path(share.At(share.Volumes, now.ID+suffix)),
				w.path(share.At(share.Trash, earlier.key()+endedMark+"1"+suffix))))
			w.open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configured("one")
			w.reopen()
			spec := specOf("one")
			v := w.make(spec)
			earlier := w.recordOf(v)
			w.must(w.Delete(t.Context(), v.Handle))
			w.tidy(0, 0)
			now := w.recordOf(w.make(spec))
			late(w, earlier, now)
			w.eventually("the volume is found", func() bool { _, err := w.Find(t.Context(), spec); return err == nil })
			w.tidy(1, 0)
		})
	}
}

// opened returns the share of a spec, which is held until the test ends.
func (w *world) opened(spec backends.Spec) (*share.Share, *share.Home) {
	w.Helper()
	p, err := w.target(spec)
	w.must(err)
	s, release, err := w.pool.Hold(w.Context(), p.Address)
	w.must(err)
	w.Cleanup(release)
	h, err := s.Home(true)
	w.must(err)
	return s, h
}

// inTrash writes a record into the trash, with data that waits for removal.
func (w *world) inTrash(r *record, name string) {
	w.Helper()
	data, err := r.encode()
	w.must(err)
	w.write(string(data), share.HomeName, share.Trash, name)
	w.write("data", share.HomeName, share.Trash, r.key(), "file")
}

// remade creates a volume, deletes it, and creates it again. After that no janitor looks at the share by itself.
func (w *world) remade(spec backends.Spec) (earlier, now *record) {
	w.Helper()
	v := w.make(spec)
	earlier = w.recordOf(v)
	w.must(w.Delete(w.Context(), v.Handle))
	w.tidy(0, 0)
	now = w.recordOf(w.make(spec))
	w.quiet(spec)
	return earlier, now
}

// A deletion that was stopped moves the record of a volume that was created again, while the earlier volume waits in
// the trash. The volume stays, and the earlier one's data is removed.
func TestLateBurialKeepsTheEarlierRecord(t *testing.T) {
	w := newWorld(t)
	spec := specOf("one")
	earlier, now := w.remade(spec)
	w.inTrash(earlier, earlier.key()+suffix)
	_, h := w.opened(spec)
	w.fails("the late burial", w.bury(h, earlier), backends.Busy, errReplaced.Error())
	if v, err := w.Find(t.Context(), spec); err != nil || w.recordOf(v).key() != now.key() {
		t.Errorf("finding the volume: %v, %v", v, err)
	}
	w.tidy(1, 0)
}

// A controller was stopped between the two steps that give a record its name in the trash. The deleted volume is
// removed all the same. If changes have brought its record back in between, the last acknowledged version decides.
func TestBurialsThatWereBegun(t *testing.T) {
	for _, folder := range []string{share.Burials, share.Trash} { // their folder, and the one of an earlier version
		t.Run(folder, func(t *testing.T) { begunBurials(t, folder) })
	}
}

func begunBurials(t *testing.T, folder string) {
	w := newWorld(t)
	spec := specOf("one")
	v := w.make(spec)
	r := w.recordOf(v)
	w.nodeOnly = true
	w.reopen()
	_, h := w.opened(spec)
	at := time.Now()
	for i, onDelete := range []string{deleteData, retainData, deleteData} { // in the order of acknowledgement
		again := *r
		again.OnDelete = onDelete
		data, err := again.encode()
		w.must(err)
		// The order of the names differs from that of the times.
		name := r.ID + buriedMark + r.Turn + "-" + []string{"1", "3", "2"}[i] + suffix
		w.write(string(data), share.HomeName, folder, name)
		written := at.Add([]time.Duration{0, 2, 1}[i] * time.Second)
		w.must(os.Chtimes(w.path(share.HomeName, folder, name), written, written))
	}
	w.must(os.Remove(w.path(share.HomeName, share.Volumes, r.ID+suffix)))
	w.noticed()
	w.must(w.layOf(h, r.ID))
	last, err := read(h, share.Trash, r.key()+suffix)
	w.must(err)
	if last.OnDelete != retainData {
		t.Errorf("what becomes of the data is %q, want %q", last.OnDelete, retainData)
	}
	w.fails("deleting it again", w.Delete(t.Context(), v.Handle), backends.NotFound)
	w.nodeOnly = false
	w.reopen()
	w.tidy(0, 0)
	if _, err := os.Stat(w.path(r.SubDir)); errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory is gone, and was to be retained")
	}
}

// A burial that was left is older or newer than the record with the usual name in the trash. The one that was written
// last decides, not the one that is read last.
func TestTheLatestRecordDecides(t *testing.T) {
	for burial, usual := range map[string]string{deleteData: retainData, retainData: deleteData} {
		t.Run("the burial says "+burial, func(t *testing.T) {
			w := newWorld(t)
			spec := specOf("one")
			r := w.recordOf(w.make(spec))
			w.nodeOnly = true
			w.reopen()
			_, h := w.opened(spec)
			at := time.Now()
			for place, onDelete := range map[string]string{
				share.At(share.Burials, burialOf(r.key())): burial, share.At(share.Trash, r.key()+suffix): usual,
			} {
				said := *r
				said.OnDelete = onDelete
				data, err := said.encode()
				w.must(err)
				w.write(string(data), place)
				written := at
				if onDelete == retainData {
					written = at.Add(time.Second)
				}
				w.must(os.Chtimes(w.path(place), written, written))
			}
			w.must(os.Remove(w.path(share.HomeName, share.Volumes, r.ID+suffix)))
			w.noticed()
			w.must(w.layOf(h, r.ID))
			last, err := read(h, share.Trash, r.key()+suffix)
			if err != nil || last.OnDelete != retainData {
				t.Errorf("the record in the trash is %+v (%v), want the one that says %q", last, err, retainData)
			}
			if left, err := os.ReadDir(w.path(share.HomeName, share.Burials)); err != nil || len(left) > 0 {
				t.Errorf("among the burials there is %v (%v), want nothing", left, err)
			}
		})
	}
}

// An unfenced change, as of an earlier version, brings the record of a volume back when its data is already removed.
// The volume does not stay.
func TestNoVolumeStaysWithoutItsData(t *testing.T) {
	w := newWorld(t)
	r := w.recordOf(w.make(specOf("one")))
	w.nodeOnly = true
	w.reopen()
	s, h := w.opened(specOf("x"))
	w.inTrash(r, r.key()+suffix) // The record is also among the volumes.
	w.must(os.RemoveAll(w.path(r.SubDir)))
	w.noticed()
	w.must(w.end(h, r.key(), true))
	if _, err := inPlace(h, volumeKind, r.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record among the volumes: %v", err)
	}
	w.janitors.add(s.Address)
	w.tidy(0, 0)
}

// The server's clock was set back between two changes of a record. The last acknowledged version decides all the same.
func TestTheLatestRecordDecidesWhateverTheClockSays(t *testing.T) {
	for name, latestIsUsual := range map[string]bool{"the burial is later": false, "the burial is earlier": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			spec := specOf("one")
			v := w.make(spec)
			w.nodeOnly = true
			w.reopen()
			first := w.recordOf(v)
			w.ask("modifying", func() error { return modified(retainData)(t.Context(), w.controllerSide, v.Handle) })
			last := w.recordOf(v)
			begun := time.Now()
			at := []buried{{share.Burials, burialOf(first.key())}, {share.Trash, first.key() + suffix}}
			if latestIsUsual {
				slices.Reverse(at)
			}
			w.says(last, at[0], retainData, begun.Add(-time.Hour))
			w.says(first, at[1], deleteData, begun)
			w.must(os.Remove(w.path(share.HomeName, share.Volumes, first.ID+suffix)))
			w.noticed()
			_, h := w.opened(spec)
			w.must(w.layOf(h, first.ID))
			r, err := read(h, share.Trash, first.key()+suffix)
			if err != nil || r.OnDelete != retainData {
				t.Errorf("the record in the trash is %+v (%v), want the one that says %q", r, err, retainData)
			}
		})
	}
}

// A record of an earlier version of the driver has no revision, and gets none: that version would drop it again.
func TestRecordsOfEarlierVersionsHaveNoRevision(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	r := w.recordOf(v)
	if r.Revision != 1 {
		t.Errorf("a new record has the revision %d, want 1", r.Revision)
	}
	for _, row := range []struct{ before, after uint64 }{{1, 2}, {0, 0}} {
		r.Revision = row.before
		w.says(r, buried{share.Volumes, r.ID + suffix}, deleteData, time.Now())
		w.noticed()
		w.ask("modifying", func() error { return modified(retainData)(t.Context(), w.controllerSide, v.Handle) })
		if changed := w.recordOf(v); changed.Revision != row.after || changed.OnDelete != retainData {
			t.Errorf("from revision %d it has become %+v, want revision %d", row.before, changed, row.after)
		}
	}
}

// A look was stopped just when a burial had its usual name in the trash, and still its own.
func TestBurialWithTwoNames(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	r := w.recordOf(v)
	w.nodeOnly = true
	w.reopen()
	_, h := w.opened(specOf("one"))
	burial := w.path(share.At(share.Burials, burialOf(r.key())))
	w.must(os.Rename(w.path(share.HomeName, share.Volumes, r.ID+suffix), burial))
	w.must(os.Link(burial, w.path(share.At(share.Trash, r.key()+suffix))))
	w.noticed()
	w.must(w.layOf(h, r.ID))
	if _, err := os.Lstat(burial); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the burial: %v", err)
	}
	if _, err := read(h, share.Trash, r.key()+suffix); err != nil {
		t.Errorf("the record in the trash: %v", err)
	}
}

// While a janitor removes another item, an earlier version of the driver moves a record to the trash that says that the
// data of a deleted volume must be kept. It is kept.
func TestJanitorSeesWhatComesMeanwhile(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.root = slow.Real
	spec := onSlow("one")
	spec.Parameters.(*Parameters).SubDir = "dir/one"
	w.quiet(spec)
	r := w.recordOf(w.make(spec))
	w.must(os.Remove(w.path(share.HomeName, share.Volumes, r.ID+suffix)))
	first := *r
	first.ID, first.SubDir = strings.Repeat("0", len(r.ID)), "dir/other"
	begun := time.Now()
	w.says(&first, buried{share.Trash, first.key() + suffix}, deleteData, begun)
	r.Revision = 0 // as that version writes it
	w.says(r, buried{share.Trash, r.key() + suffix}, deleteData, begun)
	s, h := w.opened(spec)
	slow.StopAt(t, stall.Change, 1) // in the removal of the first
	ended := make(chan error, 1)
	go func() { ended <- w.janitors.trash(s, h) }()
	w.eventually("removing something", func() bool { return slow.Stopped(t) })
	w.says(r, buried{share.Trash, burialOf(r.key())}, retainData, begun.Add(time.Second))
	// Stimulus: longer than the janitor works without a look.
	<-time.After(1100 * time.Millisecond)
	slow.Continue(t)
	w.must(<-ended)
	if _, err := os.Stat(w.path("dir", "one")); err != nil {
		t.Errorf("the data that is to be kept: %v", err)
	}
	if kept, err := os.ReadDir(w.path(share.HomeName, share.Retained)); err != nil || len(kept) != 1 {
		t.Errorf("of retained volumes there are the records %v (%v), want one", kept, err)
	}
}
