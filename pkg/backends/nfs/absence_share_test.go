package nfs

import (
	"errors"
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// Nothing is proven about a share on which this process has neither created nor found an item: it may be an empty
// directory in place of the right share. Nor is it about a share with another one's identity.
func TestNothingIsProvenOfAShareThatIsNotKnown(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	if w.absent(spec) {
		t.Error("on an empty share it is absent")
	}
	if _, err := os.Lstat(w.path(share.HomeName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the look has made the driver's directory, or %v", err)
	}
	other := w.otherWorld()
	other.make(specOf("another's"))
	if w.absent(spec) {
		t.Error("beside what only another controller has made it is absent")
	}
	w.make(specOf("own"))
	if !w.absent(spec) {
		t.Error("beside what this controller has made it is not absent")
	}
	w.reopen()
	if w.absent(spec) {
		t.Error("after a restart, of a share of which there is only a note, it is absent")
	}
	w.shut()
	other.shut()
	w.must(os.Rename(w.path(share.HomeName), w.path("away")))
	elsewhere := w.otherWorld().make(specOf("elsewhere"))
	w.open()
	w.must(second(w.Get(t.Context(), elsewhere.Handle)))
	if w.absent(spec) {
		t.Error("on another share in the place of the one that was noted it is absent")
	}
}

// An item that is found by its handle shows that the share is the right one, whichever process created it. That does
// not make the share enumerated: anybody can write a handle.
func TestAHandleShowsWhichShareItIs(t *testing.T) {
	for name, find := range map[string]func(w *world, handle string) error{
		"got":      func(w *world, handle string) error { return second(w.Get(t.Context(), handle)) },
		"expanded": func(w *world, handle string) error { return expanded(2<<10)(t.Context(), w.controllerSide, handle) },
		"copied": func(w *world, handle string) error {
			return second(w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: handle}))
		},
		"deleted": func(w *world, handle string) error { return w.Delete(t.Context(), handle) },
	} {
		t.Run(name, func(t *testing.T) {
			w, spec := newWorld(t), specOf("one")
			v, gone := w.make(specOf("earlier")), w.make(specOf("gone")).Handle
			w.must(w.Delete(t.Context(), gone))
			w.data = t.TempDir()
			w.reopen()
			w.fails("getting what is gone", second(w.Get(t.Context(), gone)), backends.NotFound)
			if w.absent(spec) {
				t.Error("before anything was found it is absent")
			}
			w.ask("finding the earlier one", func() error { return find(w, v.Handle) })
			if !w.absent(spec) {
				t.Error("beside what was found it is not absent")
			}
			_, _, err := w.List(t.Context(), backends.Page{})
			w.fails("a list", err, backends.Unavailable, "no share is known")
		})
	}
}

// Another share comes into the place of one on which this controller has found an item. An item that is created there
// proves nothing about the first share.
func TestTheShareThatWasMetFirstCounts(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	v := w.make(specOf("earlier"))
	w.data = t.TempDir() // Otherwise the note has the creation refused.
	w.quiet(spec)
	w.must(second(w.Get(t.Context(), v.Handle)))
	if !w.absent(spec) {
		t.Error("beside what was found it is not absent")
	}
	w.must(os.Rename(w.path(share.HomeName), w.path("away")))
	p, err := w.target(spec)
	w.must(err)
	w.pool.Drop(p.Address)
	w.must(second(w.Create(t.Context(), specOf("another"))))
	if _, err := os.Lstat(w.path(share.HomeName)); err != nil {
		t.Fatalf("the volume was made elsewhere: %v", err)
	}
	if w.absent(spec) {
		t.Error("on another share it is absent")
	}
}

// A refused creation leaves the driver's directory, even in an empty directory that a server exports in place of the
// right share. Listing its contents proves nothing.
func TestAListShowsNoShare(t *testing.T) {
	w := newWorld(t)
	w.config = &Config{Shares: []ShareConfig{{Name: "x", Server: testServer, Share: testShare}}}
	w.reopen()
	spec := specOf("one")
	spec.Parameters = &Parameters{ShareName: "x"}
	spec.Capacity.RequiredBytes = 1 << 60
	for range 2 {
		w.fails("more than there is", second(w.Create(t.Context(), spec)), backends.Exhausted)
		if all, _, err := w.List(t.Context(), backends.Page{}); err != nil || len(all) != 0 {
			t.Errorf("the list has %v, %v; want nothing", all, err)
		}
		if w.absent(spec) {
			t.Error("where nothing was ever made it is absent")
		}
		w.reopen()
	}
}

// A look that finds no attempt says nothing if another share was in the place of this one meanwhile.
func TestOfAnotherShareNothingIsBegun(t *testing.T) {
	w := newWorld(t)
	m, r := w.planned(specOf("one"))
	w.must(m.begin(r))
	w.must(os.Rename(w.path(share.HomeName), w.path("away")))
	for name, identity := range map[string]string{
		"no identity": "", "another": `{"version":1,"id":"000000000000"}`,
	} {
		w.must(os.MkdirAll(w.path(share.HomeName, share.Staging), 0o700))
		if identity != "" {
			w.write(identity, share.HomeName, "share.json")
		}
		_, err := m.begun(volumeKind, r.ID)
		w.fails(name, err, backends.Unavailable, "export")
	}
	w.must(os.RemoveAll(w.path(share.HomeName)))
	w.must(os.Rename(w.path("away"), w.path(share.HomeName)))
	if begun, err := m.begun(volumeKind, r.ID); err != nil || !begun {
		t.Errorf("on the right share it is begun: %t, %v", begun, err)
	}
}
