package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// changed is a call that changes a volume's record.
type changed func(ctx context.Context, e *controllerSide, handle string) error

func modified(onDelete string) changed {
	return func(ctx context.Context, e *controllerSide, handle string) error {
		return e.Modify(ctx, handle, &Mutable{OnDelete: &onDelete})
	}
}

func expanded(mib int64) changed {
	return func(ctx context.Context, e *controllerSide, handle string) error {
		return second(e.Expand(ctx, handle, backends.CapacityRange{RequiredBytes: mib << 20}))
	}
}

// overtakenChange is a change that is stopped, and a change that another controller acknowledges meanwhile.
type overtakenChange struct {
	first      string // onDelete of the volume
	late, next changed
	want       func(r *record) bool
}

func overtakenChanges() map[string]overtakenChange {
	retains := func(r *record) bool { return r.OnDelete == retainData }
	grown := func(r *record) bool { return r.SizeBytes == 4<<20 }
	return map[string]overtakenChange{
		"modified anew":        {archiveData, modified(deleteData), modified(retainData), retains},
		"left as it was":       {retainData, modified(deleteData), modified(retainData), retains},
		"expanded, then kept":  {deleteData, expanded(2), modified(retainData), retains},
		"expanded by more":     {deleteData, expanded(2), expanded(4), grown},
		"modified, then grown": {deleteData, modified(archiveData), expanded(4), grown},
	}
}

// A controller is stopped in the middle of a change, while another acknowledges one. When it resumes, it does not undo
// that change: otherwise retained data would be removed.
func TestDeposedChange(t *testing.T) {
	for name, c := range overtakenChanges() {
		t.Run(name, func(t *testing.T) {
			d := newDeposed(t)
			n := 0
			for d.changedLate(n, c) {
				n++
			}
			if least := 3; n-1 < least {
				t.Errorf("it came to %d changes, want %d at least", n-1, least)
			}
		})
	}
}

// changedLate makes a controller change a volume that others change while it is stopped at its n-th change. It returns
// false if it makes fewer.
func (d *deposed) changedLate(n int, c overtakenChange) bool {
	d.Helper()
	spec := onSlow(fmt.Sprint("volume", n))
	spec.Capacity.RequiredBytes = 1 << 20
	spec.Parameters.(*Parameters).OnDelete = c.first
	v := d.make(spec)
	stopped := d.overtaken(n, func(e *controllerSide) error { return c.late(d.Context(), e, v.Handle) }, func() {
		d.ask("changing", func() error { return c.next(d.Context(), d.controllerSide, v.Handle) })
	})
	if r := d.recordOf(v); stopped && !c.want(r) {
		d.Errorf("VIOLATION: change %d: what was acknowledged is undone: onDelete is %s, and the size is %d", n, r.OnDelete,
			r.SizeBytes)
	}
	d.ask("deleting", func() error { return d.Delete(d.Context(), v.Handle) })
	d.tidy(0, 0)
	return stopped
}

// A deletion is stopped, while another controller acknowledges a change. When it resumes, it follows that change.
func TestDeletionGoesByWhatWasAcknowledged(t *testing.T) {
	for first, last := range map[string]string{deleteData: retainData, retainData: deleteData} {
		t.Run(last, func(t *testing.T) {
			d := newDeposed(t)
			n, changed := 0, 0
			for stopped := true; stopped; n++ {
				var acknowledged bool
				if stopped, acknowledged = d.deletedLate(n, first, last); acknowledged {
					changed++
				}
			}
			if few := 2; changed < few {
				t.Errorf("%d changes were acknowledged, want %d at least: nothing was tested", changed, few)
			}
		})
	}
}

// deletedLate makes a controller delete a volume that another changes while it is stopped at its n-th change. It
// reports whether it makes so many, and whether the change was acknowledged.
func (d *deposed) deletedLate(n int, first, last string) (stopped, acknowledged bool) {
	d.Helper()
	spec := onSlow(fmt.Sprint("volume", n))
	spec.Parameters.(*Parameters).OnDelete = first
	v := d.make(spec)
	d.write("data", spec.Name, "file")
	stopped = d.overtaken(n, func(e *controllerSide) error { return e.Delete(d.Context(), v.Handle) }, func() {
		d.ask("changing", func() error {
			err := modified(last)(d.Context(), d.controllerSide, v.Handle)
			acknowledged = err == nil
			return unless(err, backends.NotFound)
		})
	})
	d.tidy(0, 0)
	if !acknowledged {
		last = first
	}
	_, err := os.Stat(d.path(spec.Name, "file"))
	if gone := errors.Is(err, fs.ErrNotExist); err != nil && !gone || gone != (last == deleteData) {
		d.Errorf("change %d: onDelete was %s in the end, and the data: %v", n, last, err)
	}
	return stopped, acknowledged
}

// A controller receives late a change that was sent twice. It makes neither: the second is as old as the first, and no
// sign that a caller still wants it.
func TestChangeThatWasSentTwice(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("pvc-1", "mine", deleteData))
	old := w.otherWorld()
	old.ask("modifying", func() error { return modified(deleteData)(t.Context(), old.controllerSide, v.Handle) })
	w.ask("modifying", func() error { return modified(retainData)(t.Context(), w.controllerSide, v.Handle) })
	w.ask("modifying", func() error { return modified(deleteData)(t.Context(), w.controllerSide, v.Handle) })
	came := backends.WithArrival(t.Context(), time.Now())
	for range 2 {
		err := modified(retainData)(came, old.controllerSide, v.Handle)
		old.fails("an old call", err, backends.Busy, errOvertaken.Error())
	}
	if r := w.recordOf(v); r.OnDelete != deleteData {
		t.Errorf("what was acknowledged is undone: onDelete is %s", r.OnDelete)
	}
	old.permits.apart = time.Hour
	old.fails("a call that comes soon", modified(retainData)(t.Context(), old.controllerSide, v.Handle), backends.Busy)
	old.permits.apart = 0
	old.must(modified(retainData)(t.Context(), old.controllerSide, v.Handle))
	old.shut()
}
