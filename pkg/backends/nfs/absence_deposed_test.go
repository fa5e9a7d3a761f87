package nfs

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/stall"
)

// provable is an item with its own name that a controller creates, looks for, and proves absent.
type provable struct {
	make, find func(e *controllerSide) error
	isAbsent   func(e *controllerSide) bool
}

// provables returns one for each kind of item that can be created from a volume.
func (d *deposed) provables(name, volume string) map[string]provable {
	spec, shot := onSlow(name), backends.SnapshotSpec{Name: name, Volume: volume}
	group := backends.GroupSpec{Name: name, Volumes: []string{volume}}
	find := func(e *controllerSide) error { return second(e.Find(d.Context(), spec)) }
	isAbsent := func(e *controllerSide) bool { return e.IsAbsent(d.Context(), spec) }
	return map[string]provable{
		"volume": {func(e *controllerSide) error { return second(e.Create(d.Context(), spec)) }, find, isAbsent},
		"clone":  {func(e *controllerSide) error { return second(e.Clone(d.Context(), spec, volume)) }, find, isAbsent},
		"snapshot": {
			func(e *controllerSide) error { return second(e.CreateSnapshot(d.Context(), shot)) },
			func(e *controllerSide) error { return second(e.FindSnapshot(d.Context(), shot)) },
			func(e *controllerSide) bool { return e.IsSnapshotAbsent(d.Context(), shot) },
		},
		"group": {
			func(e *controllerSide) error { return second(e.CreateGroup(d.Context(), group)) },
			func(e *controllerSide) error { return second(e.FindGroup(d.Context(), name)) },
			func(e *controllerSide) bool { return e.IsGroupAbsent(d.Context(), group) },
		},
	}
}

// A controller is stopped at one of its changes while it creates an item, and another proves the item absent. When the
// first resumes, it must not create the item. This includes a controller that receives the call only then, and one that
// was never called before, was turned away, and is called again.
func TestDeposedControllerMakesNothingThatIsAbsent(t *testing.T) {
	for _, kind := range []string{"volume", "clone", "snapshot", "group"} {
		for _, neverLed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, never led %t", kind, neverLed), func(t *testing.T) {
				d := newDeposed(t)
				volume := d.make(onSlow("source")).Handle
				n, proofs := 0, 0
				if d.neverLed = neverLed; neverLed {
					n = 1 // A controller that is called again after everything is over creates it.
				}
				for stopped := true; stopped; n++ {
					var proven bool
					if stopped, proven = d.provenMeanwhile(n, volume, kind); proven {
						proofs++
					}
				}
				if few := 3; proofs < few {
					t.Errorf("%d proofs were given, want %d at least: nothing was tested", proofs, few)
				}
			})
		}
	}
}

// provenMeanwhile makes a controller create an item that others prove absent while it is stopped at its n-th change. It
// reports whether it makes so many changes, and whether that was proven.
func (d *deposed) provenMeanwhile(n int, volume, kind string) (stopped, proven bool) {
	d.Helper()
	p := d.provables(fmt.Sprint("made", n), volume)[kind]
	d.leadsOn(onSlow("x"))
	stopped = d.overtaken(n, func(e *controllerSide) error {
		if d.neverLed {
			d.fails("the first call", p.make(e), backends.Busy, errOvertaken.Error())
		}
		return p.make(e)
	}, func() {
		d.must(second(d.Get(d.Context(), volume))) // It knows the share then.
		proven = finally(func() bool { return p.isAbsent(d.controllerSide) })
	})
	if err := p.find(d.controllerSide); proven && !backends.Is(err, backends.NotFound) {
		d.Errorf("VIOLATION: change %d: it was proven absent, and then looking for it gives %v, want that there is none", n,
			err)
	}
	return stopped, proven
}

// A controller is stopped in a look, at a change or before it lists names, while another is called to create the same
// item. Either the look proves nothing, or the other creates nothing. This includes creating it only after the answer,
// and a look without a permit before.
func TestDeposedControllerProvesNothingThatIsMade(t *testing.T) {
	for _, kind := range []string{"volume", "snapshot", "group"} {
		for _, neverLed := range []bool{true, false} {
			// A look lists the permits, the staging, the burials, the trash, and the permits once more. Reduce the number if it
			// needs fewer.
			for at, least := range map[stall.Request]int{stall.Change: 1, stall.List: 5} {
				t.Run(fmt.Sprintf("%s, never led %t, at %s", kind, neverLed, at), func(t *testing.T) {
					d := newDeposed(t)
					volume := d.make(onSlow("source")).Handle
					d.neverLed, d.at = neverLed, at
					n := 1
					for d.madeMeanwhile(n, volume, kind, false) && d.madeMeanwhile(n, volume, kind, true) {
						n++
					}
					if n-1 < least {
						t.Errorf("a look came to %d requests, want %d at least", n-1, least)
					}
				})
			}
		}
	}
}

// called makes our controller take over for a call that creates an item, and plans the item. The item is created later.
func (d *deposed) called(kind, name, volume string) (create func() error) {
	d.Helper()
	on := onSlow(name)
	d.leadsOn(on)
	var m *making
	var r *record
	switch kind {
	case "volume":
		m, r = d.planned(on)
	case "snapshot":
		m, r = d.plannedSnapshot(on, name, volume)
	default:
		m, r = d.plannedGroup(on, backends.GroupSpec{Name: name, Volumes: []string{volume}})
	}
	return func() error { return m.makeEmpty(d.Context(), r) }
}

// madeMeanwhile makes a controller look whether an item is absent. While it is stopped at its n-th request, others are
// called for the item. They create it at once, or after the look has ended. It returns false if the look makes fewer
// requests.
func (d *deposed) madeMeanwhile(n int, volume, kind string, late bool) bool {
	d.Helper()
	name := fmt.Sprint("made", n, late)
	isAbsent := d.provables(name, volume)[kind].isAbsent
	var isProven, answered atomic.Bool
	var create func() error // nil if the look has ended before
	d.leadsOn(onSlow("x"))
	d.overtaken(n, func(e *controllerSide) error {
		defer answered.Store(true)
		if err := second(e.Get(d.Context(), volume)); err != nil { // It knows the share then.
			return err
		}
		isProven.Store(isAbsent(e) || d.neverLed && isAbsent(e))
		return nil
	}, func() {
		if answered.Load() {
			return
		}
		create = d.called(kind, name, volume)
		if !late {
			d.must(create())
		}
	})
	switch {
	case create == nil && !isProven.Load():
		d.Errorf("nobody was called for it, and it is not proven absent")
	case create != nil && isProven.Load() && (!late || create() == nil):
		d.Errorf("VIOLATION: request %d: it was proven absent, and made for a call before that", n)
	}
	return create != nil
}
