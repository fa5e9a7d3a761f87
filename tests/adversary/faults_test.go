package adversary

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyFaultsThatTakeEffectCount makes faults that take effect, that cannot be now, and that do not do as they are
// told: the latter are failures of this test.
func TestOnlyFaultsThatTakeEffectCount(t *testing.T) {
	broken, busy := errors.New("broken"), notNow(fmt.Errorf("remount: %w", unix.EBUSY), unix.EBUSY)
	for name, test := range map[string]struct {
		begin, end error
		ends       bool // the module returns a function
		disturbs   bool
		counts     map[string]int
		notNow     map[string]int
		blamed     bool
	}{
		"takes effect":              {disturbs: true, counts: map[string]int{"eio": 1}},
		"takes effect and ends":     {ends: true, disturbs: true, counts: map[string]int{"eio": 1}},
		"cannot be now":             {begin: busy, notNow: map[string]int{"eio": 1}},
		"cannot be after a restart": {begin: busy, ends: true, disturbs: true, notNow: map[string]int{"eio": 1}},
		"does not begin":            {begin: broken, ends: true, disturbs: true, blamed: true},
		"does not end": {end: broken, ends: true, disturbs: true, counts: map[string]int{"eio": 1},
			blamed: true},
		"has nothing left to end":    {end: busy, ends: true, disturbs: true, counts: map[string]int{"eio": 1}},
		"is a violation of a driver": {begin: errors.Join(errBlamed, broken), disturbs: true},
	} {
		w := &world{tally: NewTally()}
		ended := false
		_ = w.undergo(Fault{Kind: "eio"}, func(Fault) (func() error, error) {
			if !w.disturbed.Load() {
				t.Errorf("%s: got calls that are not excused while it begins", name)
			}
			if !test.ends {
				return nil, test.begin
			}
			return func() error { ended = true; return test.end }, test.begin
		})
		if got := w.disturbed.Load(); got != test.disturbs || ended != test.ends {
			t.Errorf("%s: got disturbed %t, ended %t, want %t, %t", name, got, ended, test.disturbs, test.ends)
		}
		if !maps.Equal(w.tally.Faults, test.counts) || !maps.Equal(w.tally.NotNow, test.notNow) {
			t.Errorf("%s: got the counts %v, and not now %v, want %v, %v", name, w.tally.Faults, w.tally.NotNow, test.counts,
				test.notNow)
		}
		if blamed := len(w.wrong) > 0; blamed != test.blamed {
			t.Errorf("%s: got the violations %q, want some: %t", name, w.wrong, test.blamed)
		}
	}
}

// TestVainFaults shows that a run fails whose fault is due often and never takes effect.
func TestVainFaults(t *testing.T) {
	tally := NewTally()
	tally.NotNow = map[string]int{"newer": oftenDue, "loop": oftenDue - 1, "read-only": 2 * oftenDue}
	tally.Faults["read-only"] = 1
	if got := tally.vain(); !slices.Equal(got, []string{"newer"}) {
		t.Errorf("got %q, want newer", got)
	}
	sum := NewTally()
	if sum.Add(tally); sum.NotNow["newer"] != oftenDue {
		t.Errorf("got the sum %v, want that of %v", sum.NotNow, tally.NotNow)
	}
}
