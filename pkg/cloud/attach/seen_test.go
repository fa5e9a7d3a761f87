package attach

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// counting counts the looks.
type counting struct {
	*sim
	looks int
}

func (c *counting) Look(ctx context.Context, volume string) (Volume, error) {
	c.looks++
	return c.sim.Look(ctx, volume)
}

func TestWhatWasSeenIsNotLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{sim: newSim(1)}
		c.add("v", false)
		m := New(c, machine(c.sim).options)
		seen := c.truth("v")
		if _, err := m.Attach(t.Context(), Request{Volume: "v", Node: "one", Seen: &seen}); err != nil {
			t.Fatal(err)
		}
		if seen = c.truth("v"); len(seen.Attachments) != 1 || c.looks != 0 {
			t.Errorf("after %d looks it is %+v", c.looks, seen)
		}
		// The result of the detachment shows another attachment that has arrived meanwhile.
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one", Seen: &seen}); err != nil || c.looks != 0 ||
			c.truth("v").Has("") {
			t.Errorf("detached with %d looks: %v; it is %+v", c.looks, err, c.truth("v"))
		}
	})
}

// A volume's seen state may be out of date by its turn: then the cloud refuses, and its answer counts.
func TestWhatWasSeenMayBeOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		s.add("v", false)
		m := machine(s)
		old := s.truth("v")
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		err := within(t, time.Minute, func(ctx context.Context) error {
			_, err := m.Attach(ctx, Request{Volume: "v", Node: "two", Seen: &old})
			return err
		})
		if v := s.truth("v"); err == nil || len(v.Attachments) != 1 || v.Attachments[0].Node != "one" {
			t.Errorf("got %v; the volume is %+v", err, v)
		}
	})
}

func TestNamesAreListedOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		m := machine(s)
		for i := range 3 {
			volume := fmt.Sprint("v", i)
			s.add(volume, false)
			if err := attachTo(t, m, volume, "one"); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.asked["names of one"]; n != 1 {
			t.Errorf("the names were asked for %d times, want once", n)
		}
		// Another process takes the next name: the cloud refuses the name, and its list is read again.
		s.add("other", false)
		if _, err := s.Attach(t.Context(), "other", "one", "d"); err != nil {
			t.Fatal(err)
		}
		s.add("v3", false)
		if err := attachTo(t, m, "v3", "one"); err != nil {
			t.Fatal(err)
		}
		if n := s.asked["names of one"]; n != 2 {
			t.Errorf("the names were asked for %d times, want twice", n)
		}
		<-time.After(2 * time.Minute)
		s.add("v4", false)
		if err := attachTo(t, m, "v4", "one"); err != nil || s.asked["names of one"] != 3 {
			t.Errorf("after a while: %v, asked for %d times", err, s.asked["names of one"])
		}
	})
}

// Freed names are used again when no others are left.
func TestNamesThatWereGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		m := machine(s)
		for i := range 12 { // There are 8 names.
			volume := fmt.Sprint("v", i)
			s.add(volume, false)
			if err := attachTo(t, m, volume, "one"); err != nil {
				t.Fatal(err)
			}
			if err := m.Detach(t.Context(), Request{Volume: volume, Node: "one"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
