package backendtest

import (
	"fmt"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// reopenChecks check the promises about state that outlives the process.
func reopenChecks() []check {
	return []check{
		{"volumes are found again with their data", reopenVolumes},
		{"what is made of volumes is found again", reopenCopies},
		{"an attachment and a use are still there", reopenUse},
		{"what was deleted stays deleted", reopenDeleted},
	}
}

func (w *world) reopen() {
	w.Helper()
	w.use(w.h.Reopen(w.TB, w.instance))
}

func reopenVolumes(w *world) {
	ts := volumes(w)
	for _, name := range oddNames()[:12] {
		w.make(ts, name)
	}
	v := w.volume("one")
	types := w.contentTypes(v)
	w.writeAs(types, v.Handle, "kept")
	if w.f.Expand != nil {
		w.expand(v.Handle, backends.CapacityRange{RequiredBytes: 2 * v.CapacityBytes})
	}
	if w.f.Modify != nil {
		for _, m := range w.h.Modifications {
			w.must("Modify", w.f.Modify.Modify(w.ctx(), v.Handle, m.Value))
		}
	}
	before := map[string]thing{"one": {v.Handle, w.get(v.Handle)}}
	for _, name := range oddNames()[:12] {
		before[name], _ = ts.find(w.ctx(), name)
	}
	w.reopen()
	for name, want := range before {
		w.same(ts, name, want)
		_, err := ts.create(w.ctx(), name)
		w.fails(fmt.Sprintf("creating %q again", name), err, backends.Exists)
	}
	w.holdsAs(types, "the reopened volume", v.Handle, "kept")
	if n := len(w.h.Modifications); n > 0 && w.f.Modify != nil {
		w.is(v.Handle, w.h.Modifications[n-1])
		w.leave(v.Handle)
	}
	w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
}

func reopenCopies(w *world) {
	v := w.volume("source")
	types := w.contentTypes(v)
	w.writeAs(types, v.Handle, "kept")
	if w.f.Clone != nil {
		before := w.filled(w.f.Clone.Clone, "clone", v.Handle)
		defer func() { w.sameVolume(before) }()
	}
	if w.f.Snapshot != nil {
		before := w.snapshot("snapshot", v.Handle)
		defer func() { w.sameSnapshot(before, types) }()
	}
	if w.f.Group != nil {
		before := w.group(v.Handle)
		w.ready(before.Snapshots[0].Handle)
		defer func() { w.sameGroup(before) }()
	}
	w.reopen()
	w.sameVolume(v)
}

func (w *world) sameVolume(before *backends.Volume) {
	w.Helper()
	if after := w.get(before.Handle); !reflect.DeepEqual(after, before) {
		w.Errorf("reopened, the volume is\n%+v\nwant\n%+v", after, before)
	}
}

func (w *world) sameSnapshot(before *backends.Snapshot, types []backends.AccessType) {
	w.Helper()
	found, err := snapshotThing(w.f.Snapshot.FindSnapshot(w.ctx(), w.snapshotSpec(before.Name, before.Volume)))
	w.must("FindSnapshot", err)
	if want, _ := snapshotThing(before, nil); !reflect.DeepEqual(found, want) {
		w.Errorf("reopened, the snapshot is\n%+v\nwant\n%+v", found.value, want.value)
	}
	restored := w.filled(w.f.Snapshot.Restore, "restored", before.Handle)
	w.holdsAs(types, "the volume restored after reopening", restored.Handle, "kept")
}

func (w *world) sameGroup(before *backends.Group) {
	w.Helper()
	w.keptGroup(before)
	found, err := groupThing(w.f.Group.FindGroup(w.ctx(), before.Name))
	w.must("FindGroup", err)
	if want, _ := groupThing(before, nil); !reflect.DeepEqual(found, want) {
		w.Errorf("reopened, the group is\n%+v\nwant\n%+v", found.value, want.value)
	}
	w.fails("deleting a member", w.f.Snapshot.DeleteSnapshot(w.ctx(), before.Snapshots[0].Handle), backends.InUse)
	w.must("DeleteGroup", w.f.Group.DeleteGroup(w.ctx(), before.Handle))
}

func reopenUse(w *world) {
	v := w.volume("one")
	attachment := w.attach(v, w.spec("one").Access.Types[0])
	first := w.source(attachment)
	before := w.get(v.Handle)
	w.reopen()
	w.sameVolume(before)
	if w.f.Attach != nil || w.f.Release != nil {
		w.fails("deleting what is attached or in use", w.c.Delete(w.ctx(), v.Handle), backends.InUse)
	}
	if again := w.source(attachment); !reflect.DeepEqual(again, first) {
		w.Errorf("reopened, Source is %+v, want %+v", again, first)
	}
	w.leave(v.Handle)
	w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
}

func reopenDeleted(w *world) {
	ts := volumes(w)
	w.must("Delete", w.c.Delete(w.ctx(), w.volume("one").Handle))
	kept := w.make(ts, "kept")
	w.reopen()
	_, err := w.c.Find(w.ctx(), w.spec("one"))
	w.fails("finding what was deleted", err, backends.NotFound)
	w.onlyNew(ts, nil, kept.handle)
	w.volume("one")
}
