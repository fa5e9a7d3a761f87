package backendtest

import (
	"context"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// nodeChecks check the promises of NodeBackend, Releaser and Inspector.
func nodeChecks(f backends.Features) []check {
	checks := []check{
		{"Source describes the same thing each time", sourceAgain},
		{"Source describes another thing for another volume", sourceDiffers},
		{"Source changes nothing", sourceChangesNothing},
		{"Source answers at once when the request has ended", sourceEnded},
		{"a volume in use is not deleted", deleteInUse},
	}
	if f.Release != nil {
		checks = append(checks, check{"Release can be called again, without Source and for what is gone", releaseAnytime})
	}
	if f.Inspect != nil {
		checks = append(checks, check{"nothing is wrong with storage that is well", func(w *world) {
			w.volume("one")
			if issues, err := w.f.Inspect.Inspect(w.ctx()); len(issues) != 0 || err != nil {
				w.Errorf("the storage has the issues %+v, %v; want none", issues, err)
			}
		}})
	}
	return checks
}

func (w *world) source(attachment backends.Attachment) backends.Source {
	w.Helper()
	source, err := w.n.Source(w.ctx(), attachment)
	w.must("Source", err)
	w.describesSomething(source)
	return source
}

func sourceAgain(w *world) {
	v := w.volume("one")
	for _, as := range w.spec("one").Access.Types {
		attachment := w.attach(v, as)
		first := w.source(attachment)
		if again := w.source(attachment); !reflect.DeepEqual(again, first) {
			w.Errorf("Source is %+v the second time, %+v the first time", again, first)
		}
		if d, ok := first.(backends.Device); ok && d.Identity.SizeBytes != w.get(v.Handle).CapacityBytes {
			w.Errorf("the device has at least %d bytes, want the volume's %d", d.Identity.SizeBytes, v.CapacityBytes)
		}
		if _, ok := first.(backends.Directory); ok && as == backends.Block {
			w.Errorf("Source describes a directory for block access")
		}
		w.leave(v.Handle)
		after := w.source(w.attach(v, as))
		if _, ok := after.(backends.Directory); ok && !reflect.DeepEqual(after, first) {
			w.Errorf("Source is %+v when the volume is used again, want %+v", after, first)
		}
		w.leave(v.Handle)
	}
}

func sourceDiffers(w *world) {
	one, two := w.volume("one"), w.volume("two")
	for _, as := range w.spec("one").Access.Types {
		first, second := w.source(w.attach(one, as)), w.source(w.attach(two, as))
		if reflect.DeepEqual(first, second) {
			w.Errorf("two volumes have one source: %+v", first)
		}
	}
	w.leave(one.Handle)
	w.leave(two.Handle)
	w.writeAs(w.contentTypes(one), one.Handle, "data of one")
	w.holdsAs(w.contentTypes(one), "the other volume", two.Handle, "")
	w.writeAs(w.contentTypes(one), two.Handle, "data of two")
	w.holdsAs(w.contentTypes(one), "the first volume", one.Handle, "data of one")
}

func sourceChangesNothing(w *world) {
	v := w.volume("one")
	types := w.contentTypes(v)
	w.writeAs(types, v.Handle, "kept")
	attachment := w.attach(v, w.spec("one").Access.Types[0])
	before := w.get(v.Handle)
	w.source(attachment)
	w.source(attachment)
	if after := w.get(v.Handle); !reflect.DeepEqual(after, before) {
		w.Errorf("after Source the volume is\n%+v\nwant\n%+v", after, before)
	}
	w.leave(v.Handle)
	w.holdsAs(types, "the volume after Source", v.Handle, "kept")
}

func sourceEnded(w *world) {
	v := w.volume("one")
	attachment := w.attach(v, w.spec("one").Access.Types[0])
	ended, cancel := context.WithCancel(w.ctx())
	cancel()
	w.promptly("Source", func() {
		if _, err := w.n.Source(ended, attachment); err != nil {
			w.fails("Source with a request that has ended", err, backends.Busy, backends.Unavailable)
		}
	})
	w.leave(v.Handle)
}

// deleteInUse deletes a volume after Source, with each of its access types.
func deleteInUse(w *world) {
	v := w.volume("one")
	types := w.contentTypes(v)
	w.writeAs(types, v.Handle, "kept")
	for _, as := range w.spec("one").Access.Types {
		attachment := w.attach(v, as)
		source := w.source(attachment)
		if again := w.source(attachment); !reflect.DeepEqual(again, source) {
			w.Errorf("Source is %+v the second time, %+v the first time", again, source)
		}
		if w.knowsOfUse(v, source) {
			w.fails("deleting a volume in use", w.c.Delete(w.ctx(), v.Handle), backends.InUse)
		}
		w.leave(v.Handle)
	}
	w.holdsAs(types, "the volume that was in use", v.Handle, "kept")
	w.must("Delete of what is in use no longer", w.c.Delete(w.ctx(), v.Handle))
}

// knowsOfUse reports whether the backend can know that the volume is in use after Source. A Releaser must know it by
// itself: its volume is detached first.
func (w *world) knowsOfUse(v *backends.Volume, source backends.Source) bool {
	w.Helper()
	if w.f.Release != nil && w.f.Attach != nil {
		w.detach(v, w.node())
	}
	if w.f.Release != nil || w.f.Attach != nil {
		return true
	}
	if _, ok := source.(backends.Export); !ok && !w.h.Exports {
		w.Errorf("Source describes a %T, and Delete cannot know that it is in use: the backend has to be a Releaser or an "+
			"Attacher", source)
	}
	return false
}

// isUsed checks the result of Used.
func (w *world) isUsed(when, handle string, want bool) {
	w.Helper()
	if w.f.Release.Used(w.ctx(), handle) != want {
		w.Errorf("%s Used is %t, want %t", when, !want, want)
	}
}

func releaseAnytime(w *world) {
	v := w.volume("one")
	w.must("Release without Source", w.f.Release.Release(w.ctx(), v.Handle))
	w.isUsed("before Source", v.Handle, false)
	w.source(w.attach(v, w.spec("one").Access.Types[0]))
	w.isUsed("after Source", v.Handle, true)
	for range 2 {
		w.must("Release", w.f.Release.Release(w.ctx(), v.Handle))
		w.isUsed("after Release", v.Handle, false)
	}
	w.leave(v.Handle)
	w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
	w.must("Release of what is gone", w.f.Release.Release(w.ctx(), v.Handle))
	w.isUsed("of what is gone", v.Handle, false)
}
