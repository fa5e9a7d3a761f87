package backendtest

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const (
	thereIsNotAbsentName = "a volume that is there is not absent, whatever is asked for"
	refusedIsAbsentName  = "a volume whose making was refused is absent"
	makingIsNotName      = "a volume that is being made is not absent once it is there"
	elsewhereIsNotName   = "of another place nothing is proven"
	snapshotIsNotName    = "a snapshot that is there is not absent"
	noSnapshotName       = "a snapshot whose making was refused is absent"
	groupIsNotName       = "a group that is there is not absent"
	noGroupName          = "a group whose making was refused is absent"
)

// proofChecks are the promises of Prover. One that proves too little delays a caller; one that proves too much loses a
// volume.
func proofChecks() []check {
	return []check{
		{thereIsNotAbsentName, thereIsNotAbsent},
		{refusedIsAbsentName, refusedIsAbsent},
		{makingIsNotName, makingIsNotAbsent},
		{elsewhereIsNotName, elsewhereIsNotAbsent},
		{snapshotIsNotName, snapshotIsNotAbsent},
		{noSnapshotName, refusedSnapshotIsAbsent},
		{groupIsNotName, groupIsNotAbsent},
		{noGroupName, refusedGroupIsAbsent},
	}
}

// snapshotOnlyHere returns a spec that allows no place but this node's.
func (w *world) snapshotOnlyHere(name, volume string) backends.SnapshotSpec {
	spec := w.snapshotSpec(name, volume)
	spec.Topology = w.onlyHere(name).Topology
	return spec
}

// onlyHere returns a spec that allows no place but this node's.
func (w *world) onlyHere(name string) backends.Spec {
	spec := w.spec(name)
	if w.f.Topologist != nil {
		here := []backends.Topology{w.here()}
		spec.Topology = backends.TopologyRequirement{Requisite: here, Preferred: here}
	}
	return spec
}

// isAbsent checks the proof for a name.
func (w *world) isAbsent(when string, spec backends.Spec, want bool) {
	w.Helper()
	if got := w.f.Prove.IsAbsent(w.ctx(), spec); got != want {
		w.Errorf("%s, %q is absent: %t, want %t", when, spec.Name, got, want)
	}
}

// onKnownStorage creates a volume, if nothing is proven before.
func (w *world) onKnownStorage() {
	w.Helper()
	if w.h.NamesStorage {
		w.isAbsent("on storage that was not used yet", w.onlyHere("one"), false)
		w.volume("an earlier one")
	}
}

func thereIsNotAbsent(w *world) {
	w.onKnownStorage()
	w.isAbsent("before it is made", w.onlyHere("one"), true)
	v := w.volume("one")
	other := w.onlyHere("one")
	other.Capacity = backends.CapacityRange{RequiredBytes: 4 * v.CapacityBytes}
	w.isAbsent("once it is there", w.onlyHere("one"), false)
	w.isAbsent("once it is there, in another size", other, false)
	w.isAbsent("beside it", w.onlyHere("two"), true)
}

func refusedIsAbsent(w *world) {
	w.onKnownStorage()
	spec := w.onlyHere("one")
	spec.Capacity = backends.CapacityRange{RequiredBytes: 1 << 61}
	_, err := w.c.Create(w.ctx(), spec)
	w.fails("Create of more than there is", err, backends.OutOfRange, backends.Exhausted)
	w.isAbsent("after the refusal", spec, true)
}

// makingIsNotAbsent asks for a proof while a volume is being created, which callers must not do. Only the answer after
// that is checked: the volume is not absent then. The other looks are for the race detector, and for crashes. A backend
// may turn the creation away during a look, so their number is limited.
func makingIsNotAbsent(w *world) {
	w.onKnownStorage()
	const looks = 20
	spec, made := w.onlyHere("one"), make(chan struct{})
	create := func(ctx context.Context) error { return second(w.c.Create(ctx, spec)) }
	w.eachOf(2, func(i int) {
		if i == 0 {
			defer close(made) // in any case: the other goroutine waits for it
			if err := w.settled("Create", create); err != nil {
				w.Errorf("Create: %v", err)
			}
			return
		}
		for range looks {
			w.f.Prove.IsAbsent(w.ctx(), spec)
		}
		<-made
		w.isAbsent("once it was made", spec, false)
	})
}

// elsewhereIsNotAbsent asks about a place where the backend is not. If the Spec's parameters name the place, no other
// is asked about.
func elsewhereIsNotAbsent(w *world) {
	if w.f.Topologist == nil {
		return
	}
	w.onKnownStorage()
	nowhere := backends.Topology{}
	for _, key := range w.f.Topologist.TopologyKeys() {
		nowhere[key] = "no-such-place"
	}
	spec := w.spec("one")
	spec.Topology.Requisite = []backends.Topology{nowhere}
	w.isAbsent("in another place", spec, w.h.NamesStorage)
	spec.Topology.Requisite = append(spec.Topology.Requisite, w.here())
	w.isAbsent("here or in another place", spec, w.h.NamesStorage)
}

// isSnapshotAbsent checks the proof for a snapshot's name.
func (w *world) isSnapshotAbsent(when string, spec backends.SnapshotSpec, want bool) {
	w.Helper()
	if got := w.f.Prove.IsSnapshotAbsent(w.ctx(), spec); got != want {
		w.Errorf("%s, the snapshot %q is absent: %t, want %t", when, spec.Name, got, want)
	}
}

func snapshotIsNotAbsent(w *world) {
	if w.f.Snapshot == nil {
		return
	}
	v := w.volume("one")
	w.isSnapshotAbsent("before it is taken, with a volume of the name", w.snapshotOnlyHere("one", v.Handle), true)
	_, err := w.f.Snapshot.CreateSnapshot(w.ctx(), w.snapshotSpec("one", v.Handle))
	w.must("CreateSnapshot", err)
	w.isSnapshotAbsent("once it is there", w.snapshotOnlyHere("one", v.Handle), false)
	w.isSnapshotAbsent("once it is there, of another volume", w.snapshotOnlyHere("one", "another"), false)
	w.isSnapshotAbsent("beside it", w.snapshotOnlyHere("two", v.Handle), true)
}

func refusedSnapshotIsAbsent(w *world) {
	if w.f.Snapshot == nil {
		return
	}
	spec := w.snapshotOnlyHere("one", w.notThere())
	_, err := w.f.Snapshot.CreateSnapshot(w.ctx(), spec)
	w.fails("CreateSnapshot of no volume", err, backends.NotFound)
	w.isSnapshotAbsent("after the refusal", spec, true)
}

// notThere returns the handle of a volume that does not exist. If handles name the storage, it is of a deleted volume.
func (w *world) notThere() string {
	w.Helper()
	if !w.h.NamesStorage {
		return "no-such-volume"
	}
	v := w.volume("gone")
	w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
	return v.Handle
}

// isGroupAbsent checks the proof for a group's name.
func (w *world) isGroupAbsent(when string, spec backends.GroupSpec, want bool) {
	w.Helper()
	if got := w.f.Prove.IsGroupAbsent(w.ctx(), spec); got != want {
		w.Errorf("%s, the group %q is absent: %t, want %t", when, spec.Name, got, want)
	}
}

func groupIsNotAbsent(w *world) {
	if w.f.Group == nil {
		return
	}
	v := w.volume("one")
	_, err := w.f.Snapshot.CreateSnapshot(w.ctx(), w.snapshotSpec("one", v.Handle))
	w.must("CreateSnapshot", err)
	w.isGroupAbsent("with a volume and a snapshot of the name", w.groupSpec("one", v.Handle), true)
	_, err = w.f.Group.CreateGroup(w.ctx(), w.groupSpec("one", v.Handle))
	w.must("CreateGroup", err)
	w.isGroupAbsent("once it is there", w.groupSpec("one", v.Handle), false)
	w.isGroupAbsent("once it is there, of another volume", w.groupSpec("one", "another"), false)
	w.isGroupAbsent("beside it", w.groupSpec("two", v.Handle), true)
}

func refusedGroupIsAbsent(w *world) {
	if w.f.Group == nil {
		return
	}
	spec := w.groupSpec("one", w.volume("one").Handle, w.notThere())
	_, err := w.f.Group.CreateGroup(w.ctx(), spec)
	w.fails("CreateGroup with a volume that is not there", err, backends.NotFound)
	w.isGroupAbsent("after the refusal", spec, true)
}
