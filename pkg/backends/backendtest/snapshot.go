package backendtest

import (
	"reflect"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const noRoomName = "without room nothing is made, and that is Exhausted"

// snapshotChecks check the promises of Snapshotter about snapshots, beyond those for all things.
func snapshotChecks() []check {
	return []check{
		{"a snapshot is what its spec asks for", snapshotMeetsSpec},
		{"a snapshot outlives its volume and its restored volumes outlive it", snapshotLives},
		{"a snapshot of a volume in use has the data of one instant", func(w *world) {
			w.ofOneInstant(1, func(volumes []string, round string) ([]*backends.Volume, error) {
				s, err := w.f.Snapshot.CreateSnapshot(w.ctx(), w.snapshotSpec(round, volumes[0]))
				if err != nil {
					return nil, err
				}
				w.ready(s.Handle)
				return []*backends.Volume{w.filled(w.f.Snapshot.Restore, round, s.Handle)}, nil
			})
		}},
		{noRoomName, snapshotWithoutRoom},
		{"a volume and a snapshot may have one name", func(w *world) {
			v := w.volume("one")
			s := w.snapshot("one", v.Handle)
			if got := w.get(v.Handle); got.Name != "one" {
				w.Errorf("the volume's name is %q, want %q", got.Name, "one")
			}
			w.must("DeleteSnapshot", w.f.Snapshot.DeleteSnapshot(w.ctx(), s.Handle))
			w.get(v.Handle)
		}},
	}
}

func snapshotMeetsSpec(w *world) {
	v := w.volume("one")
	before := w.get(v.Handle)
	began := time.Now()
	s := w.snapshot("snapshot", v.Handle)
	if s.Name != "snapshot" || s.Volume != v.Handle || s.Group != "" {
		w.Errorf("the snapshot is %+v, want the name %q, the volume %q and no group", s, "snapshot", v.Handle)
	}
	if s.SizeBytes <= 0 || s.SizeBytes > v.CapacityBytes {
		w.Errorf("the snapshot has %d bytes, want 1 to %d", s.SizeBytes, v.CapacityBytes)
	}
	// The storage has its own clock, and creation may take a while if requests meet faults.
	if ended := time.Now(); s.CreatedAt.Before(began.Add(-time.Minute)) || s.CreatedAt.After(ended.Add(time.Minute)) {
		w.Errorf("the snapshot was created at %v, want about %v to %v", s.CreatedAt, began, ended)
	}
	w.reachable(s.Topology)
	if after := w.get(v.Handle); !reflect.DeepEqual(after, before) {
		w.Errorf("after the snapshot the volume is\n%+v\nwant\n%+v", after, before)
	}
}

func snapshotLives(w *world) {
	v := w.volume("source")
	types := w.contentTypes(v)
	w.writeAs(types, v.Handle, "first")
	first := w.snapshot("first", v.Handle)
	w.writeAs(types, v.Handle, "second")
	second := w.snapshot("second", v.Handle)
	w.writeAs(types, v.Handle, "third")
	restored := w.filled(w.f.Snapshot.Restore, "restored", first.Handle)
	w.holdsAs(types, "the volume", v.Handle, "third")
	w.holdsAs(types, "the restored volume", restored.Handle, "first")
	w.writeAs(types, restored.Handle, "changed")
	w.must("deleting the volume", w.c.Delete(w.ctx(), v.Handle))
	if kept := w.ready(first.Handle); !reflect.DeepEqual(kept, first) {
		w.Errorf("after its volume was deleted the snapshot is\n%+v\nwant\n%+v", kept, first)
	}
	again := w.filled(w.f.Snapshot.Restore, "restored again", first.Handle)
	later := w.filled(w.f.Snapshot.Restore, "restored later", second.Handle)
	for _, s := range []*backends.Snapshot{first, second} {
		w.must("deleting the snapshot", w.f.Snapshot.DeleteSnapshot(w.ctx(), s.Handle))
	}
	w.holdsAs(types, "the restored and changed volume", restored.Handle, "changed")
	w.holdsAs(types, "the volume restored again", again.Handle, "first")
	w.holdsAs(types, "the volume restored later", later.Handle, "second")
}

// snapshotWithoutRoom takes all the room. If a snapshot needs room, its creation fails for good and leaves nothing.
func snapshotWithoutRoom(w *world) {
	if w.f.Capacity == nil || !w.h.Reserves {
		return
	}
	v, filler := w.volume("source"), w.spec("filler")
	filler.Capacity = backends.CapacityRange{RequiredBytes: w.capacity().LargestBytes}
	full, err := w.c.Create(w.ctx(), filler)
	w.must("Create of all that there is", err)
	spec := w.snapshotSpec("snapshot", v.Handle)
	if _, err = w.f.Snapshot.CreateSnapshot(w.ctx(), spec); err == nil {
		return // Snapshots need no room.
	}
	w.fails("CreateSnapshot without room", err, backends.Exhausted)
	_, err = w.f.Snapshot.FindSnapshot(w.ctx(), spec)
	w.fails("finding it then", err, backends.NotFound)
	if w.f.Prove != nil {
		w.isSnapshotAbsent("after the refusal", w.snapshotOnlyHere(spec.Name, v.Handle), true)
	}
	w.must("Delete", w.c.Delete(w.ctx(), full.Handle))
	w.snapshot(spec.Name, v.Handle)
}

// restoreChecks check the promises of Snapshotter.Restore beyond those for all things.
func restoreChecks() []check {
	return []check{
		{"a restored volume meets its spec and names its source", func(w *world) {
			s := w.snapshot("snapshot", w.volume("source").Handle)
			w.filledMeets(w.f.Snapshot.Restore, s.Handle, s.SizeBytes, backends.ContentSource{Snapshot: s.Handle})
		}},
		{"a volume that is too small is OutOfRange", func(w *world) {
			s := w.snapshot("snapshot", w.volume("source").Handle)
			w.refusesSmaller(w.f.Snapshot.Restore, s.Handle, s.SizeBytes)
		}},
		{"a volume that cannot be used as asked is Invalid", func(w *world) {
			w.impossibleFill(w.f.Snapshot.Restore, w.snapshot("snapshot", w.volume("source").Handle).Handle)
		}},
	}
}

// listSnapshotChecks check the promises of SnapshotLister beyond those for all enumerations.
func listSnapshotChecks() []check {
	return []check{{"with a volume's handle only its snapshots are listed", func(w *world) {
		one, two := w.volume("one"), w.volume("two")
		want := map[string]string{}
		for name, v := range map[string]string{"a": one.Handle, "b": two.Handle, "c": one.Handle, "d": two.Handle} {
			want[w.snapshot(name, v).Handle] = v
		}
		w.snapshotsOf(one.Handle, want)
		w.snapshotsOf(two.Handle, want)
		w.must("deleting the volume", w.c.Delete(w.ctx(), one.Handle))
		w.snapshotsOf(one.Handle, want)
		if list, next, err := w.f.Snapshots.ListSnapshots(w.ctx(), "missing", backends.Page{}); len(list) != 0 ||
			next != "" || err != nil {
			w.Errorf("an unknown volume has the snapshots %v, %q, %v; want none", list, next, err)
		}
	}}}
}

// snapshotsOf checks a volume's snapshots, page by page, against a map from snapshots to volumes.
func (w *world) snapshotsOf(volume string, volumes map[string]string) {
	w.Helper()
	count, token := 0, ""
	for range len(volumes) + 1 {
		list, next, err := w.f.Snapshots.ListSnapshots(w.ctx(), volume, backends.Page{Limit: 1, Token: token})
		w.must("ListSnapshots", err)
		for _, s := range list {
			if count++; volumes[s.Handle] != volume || s.Volume != volume {
				w.Errorf("the list for volume %q has %+v", volume, s)
			}
		}
		if token = next; token == "" {
			break
		}
	}
	if count != 2 {
		w.Errorf("volume %q has %d snapshots listed, want 2", volume, count)
	}
}
