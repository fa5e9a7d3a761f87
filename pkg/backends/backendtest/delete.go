package backendtest

import "github.com/stowage-csi/stowage/pkg/backends"

// deleteChecks are the promises of Backend.Delete beyond those of all things.
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

// noVolume are the Kinds for which Source may fail when there is no such volume. A node to which volumes are attached
// may see only what is attached to it: it need not be let into the storage's API to tell what is deleted from what is
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
