package nfs

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// A deletion that was stopped moves the record of a volume that was made anew, just when a janitor is about to remove
// the record of the earlier volume, which has that name in the trash. The volume stays, and also when the janitor dies
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
