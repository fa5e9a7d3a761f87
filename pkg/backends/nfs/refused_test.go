package nfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// plannedSnapshot returns an attempt at a snapshot, on the share of a spec, that has a permit, but no token yet.
func (w *world) plannedSnapshot(on backends.Spec, name, volume string) (*making, *record) {
	w.Helper()
	m := w.making(on, snapshotCalls)
	m.origins = []origin{{kind: volumeKind, handle: volume, anyInstant: true}}
	size, err := m.origins[0].check(m)
	w.must(err)
	id, err := m.home.ID(string(snapshotKind), name)
	w.must(err)
	r := &record{Kind: snapshotKind, ID: id, Name: name, SizeBytes: size, SourceVolume: volume}
	w.must(m.complete(r))
	return m, r
}

// begun returns a snapshot that a controller has copied but not published yet.
func (w *world) begun(name string, of *backends.Volume) (*making, *record) {
	w.Helper()
	m, r := w.plannedSnapshot(specOf("any"), name, of.Handle)
	w.must(m.draft(w.Context(), r))
	return m, r
}

// A caller that is refused a snapshot for lack of room forgets it. So another controller's attempt, whose call was
// given up, creates nothing either when it resumes later.
func TestNothingComesOfWhatFoundNoRoom(t *testing.T) {
	w := newWorld(t)
	w.must(unix.Mount("few", w.root, "tmpfs", 0, "nr_inodes=96"))
	t.Cleanup(func() { w.must(unix.Unmount(w.root, unix.MNT_DETACH)) })
	other, v := w.otherWorld(), w.make(specOf("one"))
	m, r := other.begun("s", v)
	spec := backends.SnapshotSpec{Name: "s", Volume: v.Handle}
	_, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "other", Volume: v.Handle})
	w.fails("the first call", err, backends.Busy)
	w.ask("the other", func() error {
		return second(w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "other", Volume: v.Handle}))
	})
	err = nil
	for n := 0; err == nil; n++ {
		err = os.WriteFile(w.path(fmt.Sprint("filler", n)), nil, 0o600)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the share is full by %v", err)
	}
	_, err = w.CreateSnapshot(t.Context(), spec)
	w.fails("a snapshot on a share without files", err, backends.Exhausted)
	tokens, err := filepath.Glob(w.path(share.HomeName, share.Staging, r.ID+"-*"+suffix))
	if len(tokens) > 0 || err != nil {
		t.Errorf("attempts are left that may be published: %q, %v", tokens, err)
	}
	if err := m.publish(t.Context(), r); err == nil {
		t.Error("an attempt was published after the refusal")
	}
	_, err = w.FindSnapshot(t.Context(), spec)
	w.fails("looking for it", err, backends.NotFound)
	other.shut()
	w.shut()
}

// An item that another controller has published between the first look for it and the refusal is reported.
func TestPublishedBesideARefusal(t *testing.T) {
	w := newWorld(t)
	m, r := w.begun("s", w.make(specOf("one")))
	why := backends.Errorf(backends.Exhausted, "there is no room")
	w.must(m.publish(t.Context(), r))
	w.fails("what was published", m.refused(snapshotKind, r.ID, why), backends.Exists)
	w.must(w.DeleteSnapshot(t.Context(), r.Handle))
	w.fails("what is not there", m.refused(snapshotKind, r.ID, why), backends.Exhausted, "no room")
}

// A refusal is not final while an attempt at the same item cannot be ended, for whatever reason: after a final refusal
// the caller forgets the item, which another controller may still publish.
func TestARefusalIsOpenWhileAnAttemptIsLeft(t *testing.T) {
	w := newWorld(t)
	m, r := w.begun("s", w.make(specOf("one")))
	undo := w.immutable(w.path(share.HomeName, share.Staging, r.key()+suffix))
	why := backends.Errorf(backends.OutOfRange, "it is too large")
	err := m.refused(snapshotKind, r.ID, why)
	undo()
	w.fails("a refusal beside an attempt that stays", err, backends.Unavailable, "too large", "cannot be told",
		unix.EPERM.Error(), "chattr -i")
	w.fails("a refusal without attempts", m.refused(snapshotKind, r.ID, why), backends.OutOfRange)
}

// A refusal is final only with the proof that nothing was created.
func TestAFinalRefusalNeedsAProof(t *testing.T) {
	w, full, wrong := newWorld(t), fmt.Errorf("link: %w", unix.ENOSPC), backends.Errorf(backends.Invalid, "wrong")
	w.fails("no room, without a proof", undecided(full), backends.Unavailable, "link", "ask again")
	w.fails("another failure, without a proof", undecided(wrong), backends.Unavailable, "wrong", "ask again")
	w.fails("an item that exists", undecided(backends.Errorf(backends.Exists, "it is there")), backends.Exists)
	for err, kind := range map[error]backends.Kind{ended{full}: backends.Exhausted, ended{wrong}: backends.Invalid} {
		if err = undecided(fmt.Errorf("making a volume: %w", err)); classify(err) != kind {
			t.Errorf("%v is %s, want %s", err, classify(err), kind)
		}
	}
}
