package backendtest

import "github.com/stowage-csi/stowage/pkg/backends"

// deleteChecks check the promises of Backend.Delete beyond those for all things.
func deleteChecks() []check {
	return []check{
		{"a new volume has nothing of a deleted one", nothingIsLeft},
		{"a deleted volume has no source", func(w *world) {
			v := w.volume("one")
			attachment := w.attach(v, w.spec("one").Access.Types[0])
			w.leave(v.Handle)
			w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
			_, err := w.n.Source(w.ctx(), attachment)
			w.fails("Source", err, w.noVolume()...)
		}},
	}
}

// noVolume returns the Kinds with which Source may fail if the volume does not exist. A node with attached volumes may
// see only those. It may lack access to the storage's API, and so cannot distinguish a deleted volume from one that is
// elsewhere.
func (w *world) noVolume() []backends.Kind {
	if w.f.Attach != nil {
		return []backends.Kind{backends.NotFound, backends.Unavailable}
	}
	return []backends.Kind{backends.NotFound}
}

func nothingIsLeft(w *world) {
	v := w.volume("one")
	types := w.contentTypes(v)
	w.writeAs(types, v.Handle, "secret of the first")
	w.holdsAs(types, "the volume", v.Handle, "secret of the first")
	w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
	again := w.volume("one")
	w.holdsAs(types, "the next volume of that name", again.Handle, "")
}
