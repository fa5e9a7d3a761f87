package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// misplaced moves a record away as a late deletion does, in the way of this version or of an earlier one.
func (w *world) misplaced(r, as *record, earlierVersion bool) {
	w.Helper()
	to := share.At(share.Burials, burialOf(as.key()))
	if earlierVersion {
		to = share.At(share.Trash, as.key()+suffix)
	}
	w.must(os.Rename(w.path(share.HomeName, r.Kind.folder(), r.ID+suffix), w.path(to)))
	w.noticed()
}

// A late deletion has moved the record of a volume that was created again, and its controller was killed. No call acts
// on the volume's apparent absence: the first call puts the record back.
func TestMisplacedRecordIsNoAbsence(t *testing.T) {
	spec := in("one", "dir/one", deleteData)
	for name, call := range map[string]func(w *world, now *record) error{
		"deleting": func(w *world, now *record) error { return w.Delete(t.Context(), now.Handle) },
		"finding":  func(w *world, _ *record) error { return second(w.Find(t.Context(), spec)) },
		"making":   func(w *world, _ *record) error { return second(w.Create(t.Context(), spec)) },
		"another with its directory": func(w *world, _ *record) error {
			return second(w.Create(t.Context(), in("two", "dir/one", deleteData)))
		},
		"another inside it": func(w *world, _ *record) error {
			return second(w.Create(t.Context(), in("two", "dir/one/two", deleteData)))
		},
		"a copy": func(w *world, now *record) error {
			return second(w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: now.Handle}))
		},
		"sweeping": func(w *world, _ *record) error {
			s, h := w.opened(spec)
			return w.janitors.claims(s, h)
		},
	} {
		for _, earlierVersion := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", of an earlier version: ", earlierVersion), func(t *testing.T) {
				w := newWorld(t)
				earlier, now := w.remade(spec)
				w.misplaced(now, earlier, earlierVersion)
				w.fails("the first call", call(w, now), backends.Busy, errReplaced.Error())
				w.isWhole(spec, now)
				w.must(w.Delete(t.Context(), now.Handle))
				w.tidy(0, 0)
			})
		}
	}
}

// isWhole checks that a volume and its claim exist.
func (w *world) isWhole(spec backends.Spec, r *record) {
	w.Helper()
	if v, err := w.Find(w.Context(), spec); err != nil || w.recordOf(v).key() != r.key() {
		w.Errorf("finding the volume: %v, %v", v, err)
	}
	holder, err := os.Readlink(w.path(share.HomeName, share.Claims, claimOf(r.SubDir)))
	if err != nil || holder != r.key() {
		w.Errorf("the directory is of %q, want %q (%v)", holder, r.key(), err)
	}
}

// The record of a snapshot, or of its group, is where a late deletion has moved it. None is created under the same
// name, and none is deleted.
func TestMisplacedSnapshotIsNoAbsence(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("source"))
	w.nodeOnly = true
	w.reopen()
	spec := backends.SnapshotSpec{Name: "s", Volume: v.Handle}
	var made *backends.Snapshot
	take := func() (err error) { made, err = w.CreateSnapshot(t.Context(), spec); return err }
	w.ask("taking a snapshot", take)
	of := func(k kind, handle string) (now, earlier *record) {
		_, h := w.opened(specOf("x"))
		now, err := inPlace(h, k, idOf(t, k, handle))
		w.must(err)
		before := *now
		before.Turn = "0123456789abcdef"
		return now, &before
	}
	now, earlier := of(snapshotKind, made.Handle)
	w.misplaced(now, earlier, false)
	w.fails("taking it again", second(w.CreateSnapshot(t.Context(), spec)), backends.Busy, errReplaced.Error())
	w.fails("and again", second(w.CreateSnapshot(t.Context(), spec)), backends.Exists)
	g, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}})
	w.must(err)
	now, earlier = of(groupKind, g.Handle)
	w.misplaced(now, earlier, false)
	member := g.Snapshots[0].Handle
	w.fails("deleting a snapshot of it", w.DeleteSnapshot(t.Context(), member), backends.Busy, errReplaced.Error())
	w.fails("and again", w.DeleteSnapshot(t.Context(), member), backends.InUse)
}

// A published item that is not in its place yet does not belong to a dead attempt while its record is misplaced.
func TestMisplacedRecordKeepsTheDraft(t *testing.T) {
	w := newWorld(t)
	spec := in("one", "dir/one", deleteData)
	w.make(specOf("zero"))
	w.nodeOnly = true
	w.reopen()
	m, r := w.halfPublished(spec)
	w.must(m.home.Remove(share.Staging, r.key()+suffix))
	earlier := *r
	earlier.Turn = "0123456789abcdef"
	w.misplaced(r, &earlier, false)
	j := newJanitors(w.engine)
	defer func() { w.must(j.close(t.Context())) }()
	for range 2 {
		if _, err := j.drafts(m.share, m.home); err != nil {
			t.Errorf("a look of the janitor: %v", err)
		}
	}
	if _, err := os.Stat(w.path("dir", "one")); err != nil {
		t.Errorf("the volume's data: %v", err)
	}
	w.isWhole(spec, r)
}

// A janitor puts back records that are no trash before it removes the first tree, which may take hours.
func TestMisplacedRecordsAreFirst(t *testing.T) {
	w := newWorld(t)
	spec := in("one", "dir/one", deleteData)
	earlier, now := w.remade(spec)
	w.misplaced(now, earlier, false)
	other := *earlier
	other.ID, other.SubDir = strings.Repeat("0", len(other.ID)), "dir/other"
	w.inTrash(&other, other.key()+suffix)
	w.must(os.Mkdir(w.path(share.HomeName, share.Trash, "x"), 0o755))
	s, h := w.opened(spec)
	j := newJanitors(w.engine)
	j.stop() // It no longer removes anything.
	if err := j.trash(s, h); !errors.Is(err, context.Canceled) {
		t.Errorf("the round ended with %v", err)
	}
	if _, err := inPlace(h, volumeKind, now.ID); err != nil {
		t.Errorf("the volume's record: %v", err)
	}
}
