package backendtest

import "github.com/stowage-csi/stowage/pkg/backends"

// cloneChecks check the promises of Cloner beyond those for all things.
func cloneChecks() []check {
	return []check{
		{"a clone meets its spec and names its source", func(w *world) {
			source := w.volume("source")
			w.filledMeets(w.f.Clone.Clone, source.Handle, source.CapacityBytes, backends.ContentSource{Volume: source.Handle})
		}},
		{"a clone that is too small is OutOfRange", func(w *world) {
			source := w.volume("source")
			w.refusesSmaller(w.f.Clone.Clone, source.Handle, source.CapacityBytes)
		}},
		{"a clone that cannot be used as asked is Invalid", func(w *world) {
			w.impossibleFill(w.f.Clone.Clone, w.volume("source").Handle)
		}},
		{"a clone has the data of its source and is independent", cloneContent},
		{"a clone of a volume in use has the data of one instant", func(w *world) {
			w.ofOneInstant(1, func(volumes []string, round string) ([]*backends.Volume, error) {
				v, err := w.f.Clone.Clone(w.ctx(), w.spec(round), volumes[0])
				return []*backends.Volume{v}, err
			})
		}},
	}
}

func cloneContent(w *world) {
	source := w.volume("source")
	types := w.contentTypes(source)
	w.writeAs(types, source.Handle, "original")
	one, two := w.filled(w.f.Clone.Clone, "one", source.Handle), w.filled(w.f.Clone.Clone, "two", source.Handle)
	w.holdsAs(types, "the clone", one.Handle, "original")
	w.writeAs(types, source.Handle, "changed in the source")
	w.writeAs(types, one.Handle, "changed in the clone")
	w.holdsAs(types, "the source", source.Handle, "changed in the source")
	w.holdsAs(types, "the changed clone", one.Handle, "changed in the clone")
	w.holdsAs(types, "the other clone", two.Handle, "original")
	w.must("deleting the source", w.c.Delete(w.ctx(), source.Handle))
	w.holdsAs(types, "the clone of a deleted source", two.Handle, "original")
	of := w.filled(w.f.Clone.Clone, "clone of a clone", two.Handle)
	w.holdsAs(types, "the clone of a clone", of.Handle, "original")
	if have := w.get(two.Handle).Source.Volume; have != source.Handle {
		w.Errorf("the clone's source is %q when it is deleted, want still %q", have, source.Handle)
	}
}
