package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// counted retries as a sidecar does, and counts how often it is turned away because another controller was called.
func (w *world) counted(turned *int, what string, call func() error) {
	w.Helper()
	w.ask(what, func() error {
		err := call()
		if errors.Is(err, errOvertaken) {
			*turned++
			w.Logf("%s: %v", what, err)
		}
		return err
	})
}

// peers are controllers of one share, each of which serves another sidecar.
type peers struct {
	volumes, snapshots, changes *world
	turned                      int // calls that were turned away because another controller was called
}

// made creates a volume.
func (p *peers) made(name string, call func(spec backends.Spec) (*backends.Volume, error)) (v *backends.Volume) {
	p.volumes.Helper()
	spec := in(name, name, deleteData)
	spec.Capacity.RequiredBytes = 1 << 20
	p.volumes.counted(&p.turned, "making "+name, func() (err error) { v, err = call(spec); return err })
	return v
}

// round calls each of them in turn.
func (p *peers) round(ctx context.Context, name string) {
	p.volumes.Helper()
	v := p.made(name, func(spec backends.Spec) (*backends.Volume, error) { return p.volumes.Create(ctx, spec) })
	var s *backends.Snapshot
	p.snapshots.counted(&p.turned, "taking a snapshot", func() (err error) {
		s, err = p.snapshots.CreateSnapshot(ctx, backends.SnapshotSpec{Name: name, Volume: v.Handle})
		return err
	})
	restored := p.made("restored-"+name, func(spec backends.Spec) (*backends.Volume, error) {
		return p.volumes.Restore(ctx, spec, s.Handle)
	})
	p.changes.counted(&p.turned, "expanding", func() error { return expanded(4)(ctx, p.changes.controllerSide, v.Handle) })
	clone := p.made("clone-"+name, func(spec backends.Spec) (*backends.Volume, error) {
		return p.volumes.Clone(ctx, spec, v.Handle)
	})
	var g *backends.Group
	p.snapshots.counted(&p.turned, "taking a group snapshot", func() (err error) {
		g, err = p.snapshots.CreateGroup(ctx, backends.GroupSpec{Name: name, Volumes: []string{v.Handle, clone.Handle}})
		return err
	})
	p.changes.counted(&p.turned, "modifying", func() error {
		return modified(archiveData)(ctx, p.changes.controllerSide, clone.Handle)
	})
	p.volumes.counted(&p.turned, "deleting", func() error { return p.volumes.Delete(ctx, restored.Handle) })
	p.snapshots.counted(&p.turned, "deleting the group", func() error { return p.snapshots.DeleteGroup(ctx, g.Handle) })
	p.volumes.counted(&p.turned, "deleting the clone", func() error { return p.volumes.Delete(ctx, clone.Handle) })
	p.snapshots.counted(&p.turned, "deleting it", func() error { return p.snapshots.DeleteSnapshot(ctx, s.Handle) })
	p.volumes.counted(&p.turned, "deleting the source", func() error { return p.volumes.Delete(ctx, v.Handle) })
}

// Each sidecar has its own leader, so that several controllers are called at a time. They turn none of each other's
// calls away.
func TestPeersTurnNobodyAway(t *testing.T) {
	w := newWorld(t)
	p := &peers{volumes: w, snapshots: w.otherWorld(), changes: w.otherWorld()}
	for n := range 4 {
		p.round(t.Context(), fmt.Sprint("volume", n))
	}
	if p.turned != 0 {
		t.Errorf("%d calls were turned away, want none: nobody was overtaken", p.turned)
	}
	w.tidy(0, 0)
}

// A copy that waits for its turn is made, even if another controller is called for others of its kind meanwhile.
func TestWaitingCopySurvivesAHandOver(t *testing.T) {
	w := newWorld(t)
	other := w.otherWorld()
	v := w.sourceOf(3)
	goOn := make(chan struct{})
	w.copies.entry = func(ctx context.Context) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	}
	const copies = atOnce + 1
	answers := make(chan error, copies)
	for i := range copies {
		go func() {
			answers <- second(w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: fmt.Sprint("s", i), Volume: v.Handle}))
		}()
	}
	w.eventually("all copies but one are made, and that waits", func() bool { return len(w.tokens()) == copies })
	other.ask("another's", func() error {
		return second(other.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "other", Volume: v.Handle}))
	})
	close(goOn)
	for range copies {
		if err := <-answers; err != nil {
			t.Errorf("a snapshot that was asked for before: %v", err)
		}
	}
	w.tidy(1, copies+1)
}

// A permit of a controller of an earlier version is for all calls: it is removed, and the next caller retries.
func TestPermitOfAnEarlierVersion(t *testing.T) {
	w := newWorld(t)
	w.must(w.Delete(t.Context(), w.make(specOf("one")).Handle))
	w.must(os.RemoveAll(w.path(share.HomeName, share.Controllers)))
	w.data = t.TempDir()
	w.reopen()
	const earlier = "0123456789abcdef.fedcba9876543210"
	w.write("", share.HomeName, share.Controllers, earlier)
	_, err := w.Create(t.Context(), specOf("two"))
	w.fails("the first call", err, backends.Busy, errOvertaken.Error())
	w.must(second(w.Create(t.Context(), specOf("two"))))
	if _, err := os.Lstat(w.path(share.HomeName, share.Controllers, earlier)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the earlier permit: %v", err)
	}
}
