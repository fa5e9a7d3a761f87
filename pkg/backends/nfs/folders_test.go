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
