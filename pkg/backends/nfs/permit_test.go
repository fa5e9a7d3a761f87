package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// maker creates an item of one kind on a share with a volume and a snapshot, and removes it.
type maker struct {
	make func(ctx context.Context, e *controllerSide) (handle string, err error)
	find func(ctx context.Context, e *controllerSide) (handle string, err error)
	drop func(ctx context.Context, e *controllerSide, handle string) error
}

// makers returns one for each kind of item that can be created from a volume and a snapshot.
func makers(volume, snapshot string) map[string]maker {
	spec := onSlow("made")
	spec.Parameters.(*Parameters).SubDir = "dir/made"
	find := func(ctx context.Context, e *controllerSide) (string, error) { return handleOf(e.Find(ctx, spec)) }
	drop := func(ctx context.Context, e *controllerSide, handle string) error { return e.Delete(ctx, handle) }
	shot := backends.SnapshotSpec{Name: "shot", Volume: volume}
	snapshotHandle := func(s *backends.Snapshot, err error) (string, error) {
		if err != nil {
			return "", err
		}
		return s.Handle, nil
	}
	groupHandle := func(g *backends.Group, err error) (string, error) {
		if err != nil {
			return "", err
		}
		return g.Handle, nil
	}
	return map[string]maker{
		"volume": {func(ctx context.Context, e *controllerSide) (string, error) { return handleOf(e.Create(ctx, spec)) },
			find, drop},
		"clone": {func(ctx context.Context, e *controllerSide) (string, error) {
			return handleOf(e.Clone(ctx, spec, volume))
		}, find, drop},
		"restored": {
			func(ctx context.Context, e *controllerSide) (string, error) {
				return handleOf(e.Restore(ctx, spec, snapshot))
			}, find, drop,
		},
		"snapshot": {
			func(ctx context.Context, e *controllerSide) (string, error) {
				return snapshotHandle(e.CreateSnapshot(ctx, shot))
			},
			func(ctx context.Context, e *controllerSide) (string, error) {
				return snapshotHandle(e.FindSnapshot(ctx, shot))
			},
			func(ctx context.Context, e *controllerSide, handle string) error {
				return e.DeleteSnapshot(ctx, handle)
			},
		},
		"group": {
			func(ctx context.Context, e *controllerSide) (string, error) {
				return groupHandle(e.CreateGroup(ctx, backends.GroupSpec{Name: "group", Volumes: []string{volume}}))
			},
			func(ctx context.Context, e *controllerSide) (string, error) {
				return groupHandle(e.FindGroup(ctx, "group"))
			},
			func(ctx context.Context, e *controllerSide, handle string) error { return e.DeleteGroup(ctx, handle) },
		},
	}
}

func handleOf(v *backends.Volume, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return v.Handle, nil
}

// Others create and delete an item while a controller is stopped. When that resumes, at any step, the item does not
// come back, whatever its kind. This includes a controller that receives the call only then. It executes later calls.
func TestDeposedControllerMakesNothingThatIsDeleted(t *testing.T) {
	for kind, least := range map[string]int{"volume": 7, "clone": 10, "restored": 10, "snapshot": 9, "group": 12} {
		t.Run(kind, func(t *testing.T) {
			d := newDeposed(t)
			source := d.make(onSlow("source"))
			d.write("data", "source", "file")
			var shot *backends.Snapshot
			d.ask("taking a snapshot", func() (err error) {
				shot, err = d.CreateSnapshot(d.Context(), backends.SnapshotSpec{Name: "source", Volume: source.Handle})
				return unless(err, backends.InUse)
			})
			m := makers(source.Handle, shot.Handle)[kind]
			n := 0
			for d.madeLate(n, m) {
				n++
			}
			if n-1 < least {
				t.Errorf("it came to %d changes, want %d at least", n-1, least)
			}
		})
	}
}

// madeLate makes a controller create an item that others create and delete while it is stopped at its n-th change. It
// returns false if it makes fewer.
func (d *deposed) madeLate(n int, m maker) bool {
	d.Helper()
	drop := func() {
		handle, err := m.find(d.Context(), d.controllerSide)
		d.must(unless(err, backends.NotFound))
		if err == nil {
			d.ask("deleting", func() error { return unless(m.drop(d.Context(), d.controllerSide, handle), backends.NotFound) })
		}
	}
	stopped := d.overtaken(n, func(e *controllerSide) error { _, err := m.make(d.Context(), e); return err }, func() {
		d.ask("making", func() error { _, err := m.make(d.Context(), d.controllerSide); return unless(err, backends.Exists) })
		drop()
	})
	if _, err := m.find(d.Context(), d.controllerSide); stopped && !backends.Is(err, backends.NotFound) {
		d.Errorf("change %d: it was deleted, and then looking for it gives %v, want that there is none", n, err)
	}
	drop()
	d.tidy(1, 1)
	return stopped
}

// A controller that is stopped just before it gets its permit, while another is called, has no valid permit when it
// resumes.
func TestDeposedControllerGetsNoPermit(t *testing.T) {
	d := newDeposed(t)
	m := makers(d.make(onSlow("source")).Handle, "")["snapshot"]
	take := func(e *controllerSide) error { _, err := m.make(d.Context(), e); return err }
	d.ask("taking and deleting one", func() error { return take(d.controllerSide) })
	drop := func() {
		handle, err := m.find(d.Context(), d.controllerSide)
		d.must(err)
		d.ask("deleting", func() error { return m.drop(d.Context(), d.controllerSide, handle) })
	}
	drop()
	d.neverLed = true
	turned := false
	d.overtaken(1, func(e *controllerSide) error {
		if !turned {
			turned = true
			d.fails("the first call", take(e), backends.Busy, errOvertaken.Error())
		}
		return take(e)
	}, func() {
		d.ask("taking it", func() error { return take(d.controllerSide) })
		drop()
	})
	if _, err := m.find(d.Context(), d.controllerSide); !backends.Is(err, backends.NotFound) {
		t.Errorf("it was deleted, and then looking for it gives %v, want that there is none", err)
	}
}

// A controller removes another's permit just as that is turned into a token. It also removes the permit that the other
// has then.
func TestPermitThatIsSpentMeanwhile(t *testing.T) {
	d := newDeposed(t)
	v := d.make(onSlow("one"))
	m, r := d.planned(onSlow("other"))
	d.neverLed = true
	took := d.overtaken(2, func(e *controllerSide) error { // It creates its own permit, and removes the other's.
		d.fails("the first call", e.Delete(d.Context(), v.Handle), backends.Busy, errOvertaken.Error())
		return e.Delete(d.Context(), v.Handle)
	}, func() { d.must(m.begin(r)) })
	_, err := d.Create(d.Context(), onSlow("one"))
	d.fails("a call that may be from before the deletion", err, backends.Busy, errOvertaken.Error())
	if !took {
		t.Error("the permit was not taken away: nothing was tested")
	}
}

// A share without a free file for a permit is full: no controller works there, and waiting would never end. Calls that
// need no permit continue, so that space can become free.
func TestNoRoomForAPermit(t *testing.T) {
	w := newWorld(t)
	w.must(unix.Mount("few", w.root, "tmpfs", 0, "nr_inodes=64"))
	t.Cleanup(func() { w.must(unix.Unmount(w.root, unix.MNT_DETACH)) })
	v := w.make(specOf("one"))
	permits, err := filepath.Glob(w.path(share.HomeName, share.Controllers, "*"))
	w.must(err)
	for _, permit := range permits { // Another controller was called, and is gone.
		w.must(os.Remove(permit))
	}
	for n := 0; err == nil; n++ {
		err = os.WriteFile(w.path(fmt.Sprint("filler", n)), nil, 0o600)
	}
	if len(permits) != 1 || !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the share had the permits %q, and it is full by %v", permits, err)
	}
	_, err = w.Create(t.Context(), specOf("two"))
	w.fails("the first call", err, backends.Busy)
	_, err = w.Create(t.Context(), specOf("two"))
	w.fails("a volume on a share without files", err, backends.Exhausted)
	fresh := w.otherWorld()
	_, err = fresh.Create(t.Context(), specOf("two"))
	w.fails("a volume there, of a controller that never had a permit", err, backends.Exhausted)
	w.ask("deleting", func() error { return fresh.Delete(t.Context(), v.Handle) })
	fresh.shut()
	w.shut()
}
