package nfs

import (
	"fmt"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// A controller is stopped in the middle of an expansion, while another deletes the volume and may create it again. When
// the first resumes, it neither replaces the record of the new volume nor brings the old one back.
func TestDeposedExpansion(t *testing.T) {
	for _, anew := range []bool{true, false} {
		t.Run(fmt.Sprint("made anew ", anew), func(t *testing.T) {
			d := newDeposed(t)
			n := 1
			for d.overtakenExpansion(n, anew) {
				n++
			}
			if least := 3; n-1 < least {
				t.Errorf("an expansion came to %d changes, want %d at least", n-1, least)
			}
		})
	}
}

func (d *deposed) overtakenExpansion(n int, anew bool) bool {
	d.Helper()
	spec := onSlow("one")
	spec.Parameters.(*Parameters).SubDir = "dir/one"
	v := d.make(spec)
	stopped := d.overtaken(n, func(e *controllerSide) error {
		_, err := e.Expand(d.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 4 << 20})
		return err
	}, func() {
		d.ask("deleting", func() error { return d.Delete(d.Context(), v.Handle) })
		if anew {
			d.ask("making it anew", func() error { _, err := d.Create(d.Context(), spec); return err })
			d.write("new", "dir", "one", "new")
		}
	})
	if stopped && anew {
		d.held(fmt.Sprint("change ", n), spec)
	} else if _, err := d.Find(d.Context(), spec); stopped && !backends.Is(err, backends.NotFound) {
		d.Errorf("VIOLATION: change %d: the deleted volume: %v", n, err)
	}
	d.ask("deleting", func() error { return unless(d.Delete(d.Context(), v.Handle), backends.NotFound) })
	d.tidy(0, 0)
	return stopped
}

// A controller is stopped in the middle of creating a volume, while another creates it and may delete it. When the
// first resumes, it does not touch the other's volume, and leaves nothing.
func TestDeposedCreation(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			d := newDeposed(t)
			d.make(onSlow("zero")) // creates the driver's directory
			n := 0
			for d.overtakenCreation(n, deleted) {
				n++
			}
			if least := 7; n-1 < least {
				t.Errorf("a creation came to %d changes, want %d at least", n-1, least)
			}
		})
	}
}

func (d *deposed) overtakenCreation(n int, deleted bool) bool {
	d.Helper()
	spec := onSlow("one")
	spec.Parameters.(*Parameters).SubDir = "dir/one"
	stopped := d.overtaken(n, func(e *controllerSide) error { _, err := e.Create(d.Context(), spec); return err }, func() {
		d.ask("making it", func() error { _, err := d.Create(d.Context(), spec); return unless(err, backends.Exists) })
		v, err := d.Find(d.Context(), spec)
		d.must(err)
		d.write("new", "dir", "one", "new")
		if deleted {
			d.ask("deleting", func() error { return d.Delete(d.Context(), v.Handle) })
		}
	})
	if stopped && !deleted {
		d.held(fmt.Sprint("change ", n), spec)
	}
	v, err := d.Find(d.Context(), spec)
	if err == nil && stopped && deleted {
		d.Errorf("VIOLATION: change %d: it was deleted, and is there again", n)
	}
	if err == nil {
		d.ask("deleting", func() error { return unless(d.Delete(d.Context(), v.Handle), backends.NotFound) })
	}
	d.tidy(1, 0)
	return stopped
}

// A deletion finds nothing, because an earlier call publishes the volume just before its token is removed. The deletion
// does not report that the volume is gone.
func TestDeletionBesideAPublication(t *testing.T) {
	d := newDeposed(t)
	d.make(onSlow("zero")) // creates the driver's directory
	m, r := d.attempt(onSlow("one"))
	d.neverLed = true
	var failed error
	stopped := d.overtaken(1, func(e *controllerSide) error { // It has found nothing, and creates its permit.
		d.fails("the first call", e.Delete(d.Context(), r.Handle), backends.Busy, errOvertaken.Error())
		failed = e.Delete(d.Context(), r.Handle)
		return failed
	}, func() { d.must(m.publish(d.Context(), r)) })
	if !stopped {
		t.Fatal("the deletion came to no change: nothing was tested")
	}
	d.fails("the deletion", failed, backends.Busy, "ask again")
	d.ask("deleting it", func() error { return d.Delete(d.Context(), r.Handle) })
	d.tidy(1, 0)
}
