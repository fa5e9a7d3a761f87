package backendtest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// awayChecks take the storage of the volumes away. Everything on it is Unusable in all calls, keeps its name and its
// handle, and is usable again once the storage is back.
func awayChecks(h Harness) []check {
	var checks []check
	for _, name := range slices.Sorted(maps.Keys(h.Lose)) {
		checks = append(checks, check{name, func(w *world) { w.storageIsLost(h.Lose[name]) }})
	}
	return checks
}

func (w *world) storageIsLost(lose Loss) {
	v := w.volume("one")
	types := w.contentTypes(v)
	w.writeAs(types, v.Handle, "kept")
	kept := w.copies(v)
	restore := func() {}
	w.use(w.h.reopenWith(w.TB, w.instance, func(o *backends.Options) { restore = lose(w.TB, o) }))
	w.volumeIsUnusable(v)
	w.copiesAreUnusable(kept)
	if w.f.Prove != nil && w.f.Prove.IsAbsent(w.ctx(), w.onlyHere(v.Name)) {
		w.Errorf("a volume that is away is proven absent")
	}
	if w.f.Inspect != nil {
		if issues, err := w.f.Inspect.Inspect(w.ctx()); err != nil || len(issues) == 0 {
			w.Errorf("Inspect says %+v, %v; want what is wrong", issues, err)
		}
	}
	restore()
	w.reopen()
	w.sameVolume(v)
	w.holdsAs(types, "with its storage again, the volume", v.Handle, "kept")
	if kept.snapshot != nil {
		w.sameSnapshot(kept.snapshot, types)
	}
	if kept.group != nil {
		w.sameGroup(kept.group)
	}
	w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
}

// copies are the copies of a volume.
type copies struct {
	snapshot *backends.Snapshot
	group    *backends.Group
}

func (w *world) copies(v *backends.Volume) copies {
	w.Helper()
	var c copies
	if w.f.Snapshot != nil {
		c.snapshot = w.snapshot("snapshot of one", v.Handle)
	}
	if w.f.Group != nil {
		c.group = w.group(v.Handle)
		w.ready(c.group.Snapshots[0].Handle)
	}
	return c
}

// unusable checks that a call fails because its item exists but cannot be used.
func (w *world) unusable(what string, err error) {
	w.Helper()
	w.fails(what+" of what is away", err, backends.Unusable)
}

func (w *world) volumeIsUnusable(v *backends.Volume) {
	w.Helper()
	for range 2 { // The refused calls must have changed nothing.
		for _, use := range w.volumeUses() {
			if use.name == "Health" {
				issues, err := w.f.Health.Health(w.ctx(), v.Handle)
				if err != nil || len(issues) == 0 {
					w.Errorf("Health of what is away: got %+v, %v; want what is wrong", issues, err)
				}
				continue
			}
			w.unusable(use.name, use.call(v.Handle))
		}
		w.unusable("Find", second(w.c.Find(w.ctx(), w.spec("one"))))
		w.unusable("Create in the name", second(w.c.Create(w.ctx(), w.spec("one"))))
		if w.f.Clone != nil {
			w.unusable("Clone", second(w.f.Clone.Clone(w.ctx(), w.spec("clone of one"), v.Handle)))
		}
		if w.f.Snapshot != nil {
			w.unusable("CreateSnapshot", second(w.f.Snapshot.CreateSnapshot(w.ctx(), w.snapshotSpec("another", v.Handle))))
		}
		if w.f.Group != nil {
			w.unusable("CreateGroup", second(w.f.Group.CreateGroup(w.ctx(), w.groupSpec("another", v.Handle))))
		}
	}
	if w.f.Release != nil {
		w.must("Release of what is away", w.f.Release.Release(w.ctx(), v.Handle))
	}
	if handles, ok := w.listed(volumes(w)); ok && !slices.Contains(handles, v.Handle) {
		w.Errorf("the list is %q: it lacks what is away, %q", handles, v.Handle)
	}
}

func (w *world) copiesAreUnusable(c copies) {
	w.Helper()
	if c.snapshot != nil && w.f.Snapshot != nil {
		for _, use := range w.snapshotUses() {
			w.unusable(use.name, use.call(c.snapshot.Handle))
		}
		spec := w.snapshotSpec(c.snapshot.Name, c.snapshot.Volume)
		w.unusable("FindSnapshot", second(w.f.Snapshot.FindSnapshot(w.ctx(), spec)))
		w.unusable("CreateSnapshot in the name", second(w.f.Snapshot.CreateSnapshot(w.ctx(), spec)))
	}
	if c.group == nil || w.f.Group == nil {
		return
	}
	for _, use := range w.groupUses() {
		w.unusable(use.name, use.call(c.group.Handle))
	}
	w.unusable("FindGroup", second(w.f.Group.FindGroup(w.ctx(), c.group.Name)))
	for i, member := range c.group.Snapshots {
		w.unusable(fmt.Sprintf("GetSnapshot of member %d", i), second(w.f.Snapshot.GetSnapshot(w.ctx(), member.Handle)))
	}
}
