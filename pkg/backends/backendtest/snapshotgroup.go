package backendtest

import (
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const apartName = "volumes that cannot be taken together are InUse"

// groupChecks check the promises of GroupSnapshotter beyond those for all things.
func groupChecks() []check {
	return []check{
		{"a group is what its spec asks for", groupMeetsSpec},
		{"all snapshots exist afterwards or none", groupAllOrNone},
		{"no volume, or one named twice, is Invalid", groupInvalid},
		{apartName, groupApart},
		{"a member goes with its group only", groupMembers},
		{"members are restored with their volumes' data", groupContent},
		{"all snapshots are of one instant", func(w *world) {
			w.ofOneInstant(2, func(volumes []string, round string) ([]*backends.Volume, error) {
				g, err := w.f.Group.CreateGroup(w.ctx(), w.groupSpec(round, volumes...))
				if err != nil {
					return nil, err
				}
				var copies []*backends.Volume
				for _, s := range g.Snapshots {
					w.ready(s.Handle)
					copies = append(copies, w.filled(w.f.Snapshot.Restore, round+" of "+s.Volume, s.Handle))
				}
				return copies, nil
			})
		}},
	}
}

// group creates the group "group" with snapshots of the volumes.
func (w *world) group(volumes ...string) *backends.Group {
	w.Helper()
	g, err := w.f.Group.CreateGroup(w.ctx(), w.groupSpec("group", volumes...))
	if err != nil || g == nil {
		w.Fatalf("CreateGroup: got %v, %v; want a group", g, err)
	}
	w.groupKeeps("CreateGroup", g)
	return g
}

// groupKeeps checks that a group has the fingerprint of its spec.
func (w *world) groupKeeps(call string, g *backends.Group) {
	w.Helper()
	if want := w.groupSpec(g.Name).Fingerprint; g.Fingerprint != want {
		w.Errorf("%s returns the fingerprint %q, want %q", call, g.Fingerprint, want)
	}
}

// keptGroup looks up a group in all ways, and checks the fingerprints of the results.
func (w *world) keptGroup(g *backends.Group) {
	w.Helper()
	got, err := w.f.Group.GetGroup(w.ctx(), g.Handle)
	w.must("GetGroup", err)
	w.groupKeeps("GetGroup", got)
	found, err := w.f.Group.FindGroup(w.ctx(), g.Name)
	w.must("FindGroup", err)
	w.groupKeeps("FindGroup", found)
}

func groupMeetsSpec(w *world) {
	volumes := []string{w.volume("b").Handle, w.volume("c").Handle, w.volume("a").Handle}
	began := time.Now()
	g := w.group(volumes...)
	if g.Name != "group" || len(g.Snapshots) != len(volumes) {
		w.Fatalf("the group is %+v, want the name %q and %d snapshots", g, "group", len(volumes))
	}
	// The storage has its own clock, and creation may take a while if requests meet faults.
	if ended := time.Now(); g.CreatedAt.Before(began.Add(-time.Minute)) || g.CreatedAt.After(ended.Add(time.Minute)) {
		w.Errorf("the group was created at %v, want about %v to %v", g.CreatedAt, began, ended)
	}
	handles := map[string]bool{}
	for i, s := range g.Snapshots {
		handles[s.Handle] = true
		if s.Volume != volumes[i] || s.Group != g.Handle {
			w.Errorf("snapshot %d is of volume %q in group %q, want %q in %q", i, s.Volume, s.Group, volumes[i], g.Handle)
		}
		if got := w.ready(s.Handle); got.Group != g.Handle || got.Volume != volumes[i] {
			w.Errorf("GetSnapshot of a member returns %+v, want the group %q and the volume %q", got, g.Handle, volumes[i])
		}
	}
	if len(handles) != len(volumes) {
		w.Errorf("the members share handles: %v", handles)
	}
	w.keptGroup(g)
	w.listsMembers(g)
}

// listsMembers checks that ListSnapshots returns the group's members.
func (w *world) listsMembers(g *backends.Group) {
	w.Helper()
	if w.f.Snapshots == nil {
		return
	}
	list, _, err := w.f.Snapshots.ListSnapshots(w.ctx(), "", backends.Page{})
	w.must("ListSnapshots", err)
	for _, member := range g.Snapshots {
		if !slices.ContainsFunc(list,
			func(s backends.Snapshot) bool { return s.Handle == member.Handle && s.Group == g.Handle }) {
			w.Errorf("ListSnapshots does not return the member %q: %v", member.Handle, list)
		}
	}
}

// noSnapshots checks that no snapshot exists.
func (w *world) noSnapshots(after string) {
	w.Helper()
	if w.f.Snapshots == nil {
		return
	}
	if list, _, err := w.f.Snapshots.ListSnapshots(w.ctx(), "", backends.Page{}); len(list) != 0 || err != nil {
		w.Errorf("after %s there are the snapshots %v, %v; want none", after, list, err)
	}
}

func groupAllOrNone(w *world) {
	one := w.volume("one").Handle
	for _, volumes := range [][]string{{one, "missing"}, {"missing", one}} {
		_, err := w.f.Group.CreateGroup(w.ctx(), w.groupSpec("group", volumes...))
		w.fails("a group with a missing volume", err, backends.NotFound)
		_, err = w.f.Group.FindGroup(w.ctx(), "group")
		w.fails("finding it then", err, backends.NotFound)
		w.noSnapshots("a group that failed")
	}
	g := w.group(one)
	w.must("DeleteGroup", w.f.Group.DeleteGroup(w.ctx(), g.Handle))
	_, err := w.f.Snapshot.GetSnapshot(w.ctx(), g.Snapshots[0].Handle)
	w.fails("getting a member of a deleted group", err, backends.NotFound)
	w.noSnapshots("DeleteGroup")
}

func groupInvalid(w *world) {
	one, two := w.volume("one").Handle, w.volume("two").Handle
	for name, volumes := range map[string][]string{"no volume": nil, "one twice": {one, one},
		"one twice, apart": {one, two, one}} {
		_, err := w.f.Group.CreateGroup(w.ctx(), w.groupSpec("group", volumes...))
		w.fails("a group of "+name, err, backends.Invalid)
	}
	_, err := w.f.Group.FindGroup(w.ctx(), "group")
	w.fails("finding it then", err, backends.NotFound)
	w.noSnapshots("groups that were invalid")
}

// groupApart requests what CSI calls a group of volumes that are not configured for it. The request itself is valid.
func groupApart(w *world) {
	if w.h.Apart == nil {
		return
	}
	instance, volumes := w.h.Apart(w)
	w.use(instance)
	_, err := w.f.Group.CreateGroup(w.ctx(), w.groupSpec("group", volumes...))
	w.fails("a group of volumes that cannot be taken together", err, backends.InUse)
	_, err = w.f.Group.FindGroup(w.ctx(), "group")
	w.fails("finding it then", err, backends.NotFound)
	w.noSnapshots("a group that cannot be")
}

func groupMembers(w *world) {
	g := w.group(w.volume("one").Handle, w.volume("two").Handle)
	for _, s := range g.Snapshots {
		w.fails("deleting a member", w.f.Snapshot.DeleteSnapshot(w.ctx(), s.Handle), backends.InUse)
		w.ready(s.Handle)
	}
	if _, err := w.f.Snapshot.FindSnapshot(w.ctx(), w.snapshotSpec("group", g.Snapshots[0].Volume)); err != nil {
		w.fails("finding a snapshot by the group's name", err, backends.NotFound)
	}
	w.must("DeleteGroup", w.f.Group.DeleteGroup(w.ctx(), g.Handle))
	for _, s := range g.Snapshots {
		w.fails("deleting what went with its group", w.f.Snapshot.DeleteSnapshot(w.ctx(), s.Handle), backends.NotFound)
	}
}

func groupContent(w *world) {
	one, two := w.volume("one"), w.volume("two")
	types := w.contentTypes(one)
	w.writeAs(types, one.Handle, "data of one")
	w.writeAs(types, two.Handle, "data of two")
	g := w.group(one.Handle, two.Handle)
	w.writeAs(types, one.Handle, "changed")
	w.must("deleting a volume", w.c.Delete(w.ctx(), two.Handle))
	for i, want := range []string{"data of one", "data of two"} {
		w.ready(g.Snapshots[i].Handle)
		restored := w.filled(w.f.Snapshot.Restore, "restored "+want, g.Snapshots[i].Handle)
		w.holdsAs(types, "the restored volume", restored.Handle, want)
	}
	w.must("DeleteGroup", w.f.Group.DeleteGroup(w.ctx(), g.Handle))
	restored, err := w.c.Find(w.ctx(), w.spec("restored data of one"))
	w.must("Find", err)
	w.holdsAs(types, "the volume restored from a group that is gone", restored.Handle, "data of one")
}
