package backendtest

import (
	"fmt"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// handleChecks call every method that takes a handle with handles that were never returned.
func handleChecks() []check {
	return []check{
		{"a handle that was never given out is NotFound everywhere", foreignHandles},
		{"handles of other kinds are NotFound", otherKinds},
	}
}

// handleUse is a call that must fail with NotFound for an unknown handle.
type handleUse struct {
	name string
	call func(handle string) error
}

func foreignHandles(w *world) {
	v := w.volume("one")
	want := w.get(v.Handle)
	handles := oddHandles(v.Handle)
	if v.Handle != v.Name {
		handles = append(handles, v.Name)
	}
	for _, use := range append(w.volumeUses(), w.dataUses()...) {
		for _, handle := range handles {
			w.fails(fmt.Sprintf("%s of %.40q", use.name, handle), use.call(handle), backends.NotFound)
		}
	}
	for _, handle := range handles {
		w.toleratesHandle(handle)
	}
	if have := w.get(v.Handle); !reflect.DeepEqual(have, want) {
		w.Errorf("the volume beside them is now\n%+v\nwant\n%+v", have, want)
	}
}

// toleratesHandle checks the calls that do not fail for a volume that is gone.
func (w *world) toleratesHandle(handle string) {
	w.Helper()
	if w.f.Release != nil {
		w.must(fmt.Sprintf("Release of %.40q", handle), w.f.Release.Release(w.ctx(), handle))
	}
	if w.f.Snapshots != nil && handle != "" {
		list, next, err := w.f.Snapshots.ListSnapshots(w.ctx(), handle, backends.Page{})
		if len(list) != 0 || next != "" || err != nil {
			w.Errorf("ListSnapshots of %.40q: got %v, %q, %v; want nothing", handle, list, next, err)
		}
	}
}

// volumeUses returns the calls for a volume.
func (w *world) volumeUses() []handleUse {
	uses := []handleUse{
		{"Get", func(handle string) error { return second(w.c.Get(w.ctx(), handle)) }},
		{"Delete", func(handle string) error { return w.c.Delete(w.ctx(), handle) }},
	}
	for _, as := range w.spec("any").Access.Types {
		uses = append(uses, handleUse{"Source", func(handle string) error {
			return second(w.n.Source(w.ctx(), backends.Attachment{Handle: handle, Type: as}))
		}})
	}
	if w.f.Attach != nil {
		uses = append(uses,
			handleUse{"Attach", func(handle string) error {
				return second(w.f.Attach.Attach(w.ctx(), w.attachRequest(&backends.Volume{Handle: handle}, w.node())))
			}},
			handleUse{"Detach", func(handle string) error { return w.f.Attach.Detach(w.ctx(), handle, w.node()) }},
			handleUse{"Detach from every node", func(handle string) error { return w.f.Attach.Detach(w.ctx(), handle, "") }})
	}
	if w.f.Expand != nil {
		uses = append(uses, handleUse{"Expand", func(handle string) error {
			return second(w.f.Expand.Expand(w.ctx(), handle, w.spec("any").Capacity))
		}})
	}
	if w.f.Modify != nil {
		uses = append(uses, handleUse{"Modify", func(handle string) error {
			return w.f.Modify.Modify(w.ctx(), handle, w.h.Definition.NewMutable())
		}})
	}
	if w.f.Health != nil {
		uses = append(uses, handleUse{"Health",
			func(handle string) error { return second(w.f.Health.Health(w.ctx(), handle)) }})
	}
	return uses
}

// dataUses returns the calls that copy a volume.
func (w *world) dataUses() []handleUse {
	var uses []handleUse
	if w.f.Clone != nil {
		uses = append(uses, handleUse{"Clone", func(handle string) error {
			return second(w.f.Clone.Clone(w.ctx(), w.spec("clone"), handle))
		}})
	}
	if w.f.Snapshot != nil {
		uses = append(uses, handleUse{"CreateSnapshot", func(handle string) error {
			return second(w.f.Snapshot.CreateSnapshot(w.ctx(), w.snapshotSpec("snapshot", handle)))
		}})
	}
	if w.f.Group != nil {
		member := w.volume("in the group").Handle
		uses = append(uses, handleUse{"CreateGroup", func(handle string) error {
			return second(w.f.Group.CreateGroup(w.ctx(), w.groupSpec("group", member, handle)))
		}})
	}
	return uses
}

// snapshotUses returns the calls for a snapshot.
func (w *world) snapshotUses() []handleUse {
	if w.f.Snapshot == nil {
		return nil
	}
	return []handleUse{
		{"GetSnapshot", func(handle string) error { return second(w.f.Snapshot.GetSnapshot(w.ctx(), handle)) }},
		{"DeleteSnapshot", func(handle string) error { return w.f.Snapshot.DeleteSnapshot(w.ctx(), handle) }},
		{"Restore", func(handle string) error { return second(w.f.Snapshot.Restore(w.ctx(), w.spec("restored"), handle)) }},
	}
}

// groupUses returns the calls for a group.
func (w *world) groupUses() []handleUse {
	if w.f.Group == nil {
		return nil
	}
	return []handleUse{
		{"GetGroup", func(handle string) error { return second(w.f.Group.GetGroup(w.ctx(), handle)) }},
		{"DeleteGroup", func(handle string) error { return w.f.Group.DeleteGroup(w.ctx(), handle) }},
	}
}

func otherKinds(w *world) {
	handles := map[string]string{"a volume": w.volume("one").Handle}
	if w.f.Snapshot != nil {
		handles["a snapshot"] = w.snapshot("one", handles["a volume"]).Handle
	}
	if w.f.Group != nil {
		g, err := w.f.Group.CreateGroup(w.ctx(), w.groupSpec("one", handles["a volume"]))
		w.must("CreateGroup", err)
		handles["a group"] = g.Handle
	}
	for kind, uses := range map[string][]handleUse{
		"a volume": append(w.volumeUses(), w.dataUses()...), "a snapshot": w.snapshotUses(), "a group": w.groupUses(),
	} {
		for other, handle := range handles {
			if other == kind {
				continue
			}
			for _, use := range uses {
				w.fails(fmt.Sprintf("%s with the handle of %s", use.name, other), use.call(handle), backends.NotFound)
			}
		}
	}
}
