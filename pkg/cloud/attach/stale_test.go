package attach

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// stale is a cloud that shows old states of a volume first, and its true state then.
type stale struct {
	*sim
	past []Volume
}

func (s *stale) Look(ctx context.Context, volume string) (Volume, error) {
	if len(s.past) == 0 {
		return s.sim.Look(ctx, volume)
	}
	v := s.past[0]
	s.past = s.past[1:]
	return v, nil
}

func (s *stale) Wait(ctx context.Context, transition, volume string,
	until func(Volume, error) (bool, error)) (Volume, error) {
	var shown Volume
	_, err := s.sim.Wait(ctx, transition, volume, func(v Volume, err error) (bool, error) {
		if len(s.past) > 0 {
			v, s.past = s.past[0], s.past[1:]
		}
		shown = v
		return until(v, err)
	})
	if err != nil {
		return Volume{}, err
	}
	return shown, nil
}

// A single look from before the attachment does not prove that there is none, neither before nor after the request, and
// regardless of the process's age: another process may have attached the volume.
func TestOneOldLookDetachesNothing(t *testing.T) {
	for _, row := range []struct{ old, before, other bool }{
		{}, {old: true}, {old: true, other: true}, {old: true, before: true, other: true},
	} {
		for seed := range uint64(5) { // Each seed gives the cloud a different delay.
			synctest.Test(t, func(t *testing.T) { oneOldLookDetachesNothing(t, seed, row.old, row.before, row.other) })
		}
	}
}

// oneOldLookDetachesNothing makes a process detach a recently attached volume. Another process has attached it if other
// is set. That process may be old, and may have attached the volume before.
func oneOldLookDetachesNothing(t *testing.T, seed uint64, old, before, other bool) {
	s := &stale{sim: newSim(seed)}
	s.add("v", false)
	past := s.truth("v")
	m := New(s, machine(s.sim).options)
	standby := m
	if other {
		standby = New(s, m.options)
	}
	if before {
		if err := attachTo(t, standby, "v", "one"); err != nil {
			t.Fatal(err)
		}
	}
	if old {
		<-time.After(time.Hour)
	}
	if before {
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := attachTo(t, m, "v", "one"); err != nil {
		t.Fatal(err)
	}
	s.past = []Volume{past, past, past}
	if err := standby.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil || s.truth("v").Has("") {
		t.Errorf("detached with %v, and it is %+v", err, s.truth("v"))
	}
}

// A process detaches an attachment that it has seen for long by one request.
func TestWhatIsOldIsDetachedByOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		s.add("v", false)
		m := machine(s)
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil || s.asked["detach v from one"] != 1 {
			t.Errorf("detached with %v, after %v", err, s.asked)
		}
	})
}

// A single look from before the detachment does not prove that the volume is attached.
func TestOneOldLookAttachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stale{sim: newSim(1)}
		s.add("v", false)
		m := New(s, machine(s.sim).options)
		standby := New(s, m.options)
		<-time.After(time.Hour)
		for range 2 {
			if err := attachTo(t, m, "v", "one"); err != nil {
				t.Fatal(err)
			}
		}
		before := s.truth("v")
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
			t.Fatal(err)
		}
		s.past = []Volume{before, before}
		if err := attachTo(t, m, "v", "one"); err != nil || !s.truth("v").Has("one") ||
			s.truth("v").Attachments[0].State != Attached {
			t.Errorf("attached with %v, and it is %+v", err, s.truth("v"))
		}
		// Another process, however old it is, knows of no detachment: it asks.
		for name, other := range map[string]*Machine{"a restart": New(s, m.options), "a change of the leader": standby} {
			if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
				t.Fatal(err)
			}
			s.past = []Volume{before, before}
			if err := attachTo(t, other, "v", "one"); err != nil || !s.truth("v").Has("one") ||
				s.truth("v").Attachments[0].State != Attached {
				t.Errorf("attached after %s with %v, and it is %+v", name, err, s.truth("v"))
			}
		}
	})
}

// A process does not rely on old looks if another process has moved the volume to another node.
func TestOldLooksOfAnotherProcessAttachNothing(t *testing.T) {
	for _, state := range []State{Attaching, Attached} {
		synctest.Test(t, func(t *testing.T) {
			s := &stale{sim: newSim(1)}
			s.add("v", false)
			m := New(s, machine(s.sim).options)
			if err := attachTo(t, m, "v", "one"); err != nil {
				t.Fatal(err)
			}
			before := s.truth("v")
			attaching := before
			attaching.Attachments = slices.Clone(before.Attachments)
			attaching.Attachments[0].State = state
			if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
				t.Fatal(err)
			}
			if err := attachTo(t, m, "v", "two"); err != nil {
				t.Fatal(err)
			}
			s.past = []Volume{attaching, before, before}
			if err := attachTo(t, New(s, m.options), "v", "one"); !failure.Is(err, failure.InUse) {
				t.Errorf("shown as %s, it is attached with %v, want InUse; it is %+v", state, err, s.truth("v"))
			}
		})
	}
}

// full is a cloud whose nodes are full, which it reports before it looks at the volume.
type full struct{ *sim }

func (f full) Attach(context.Context, string, string, string) (time.Time, error) {
	return time.Time{}, failure.Errorf(failure.Exhausted, "the node has as many as it can have")
}

// A full node keeps the volumes that it has.
func TestAttachedToAFullNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		s.add("v", false)
		s.add("w", false)
		m := machine(s)
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		old := s.truth("v")
		other := New(full{s}, m.options)
		if err := attachTo(t, other, "v", "one"); err != nil {
			t.Errorf("what is attached is attached again with %v", err)
		}
		if err := attachTo(t, other, "w", "one"); !failure.Is(err, failure.Exhausted) {
			t.Errorf("what is not is attached with %v, want Exhausted", err)
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
			t.Fatal(err)
		}
		err := within(t, time.Minute, func(ctx context.Context) error {
			_, err := other.Attach(ctx, Request{Volume: "v", Node: "one", Seen: &old})
			return err
		})
		if !failure.Is(err, failure.Exhausted) {
			t.Errorf("what another process has detached is attached with %v, want Exhausted", err)
		}
	})
}

// A cloud may report the start of an attachment only to the second.
func TestAttachedAgainWithinATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		s.tick = time.Minute
		s.add("v", false)
		options := machine(s).options
		options.Tick = s.tick
		m := New(s, options)
		for range 3 {
			if err := within(t, 2*time.Minute, func(ctx context.Context) error {
				_, err := m.Attach(ctx, Request{Volume: "v", Node: "one"})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A process does not rely on old looks for an attachment that it requested itself, in a call that ended before the
// volume was attached: another process has detached it since.
func TestOldLooksOfItsOwnAttachNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stale{sim: newSim(1)}
		s.add("v", false)
		m := New(s, machine(s.sim).options)
		err := within(t, 100*time.Millisecond, func(ctx context.Context) error {
			_, err := m.Attach(ctx, Request{Volume: "v", Node: "one"})
			return err
		})
		attaching := s.truth("v")
		if !failure.Is(err, failure.Busy) || len(attaching.Attachments) != 1 {
			t.Fatalf("attached with %v, want Busy; it is %+v", err, attaching)
		}
		attached := Volume{Attachments: slices.Clone(attaching.Attachments)}
		attached.Attachments[0].State = Attached
		<-time.After(5 * time.Second)
		err = New(s, m.options).Detach(t.Context(), Request{Volume: "v", Node: "one"})
		if err != nil || s.truth("v").Has("") {
			t.Fatalf("detached with %v, and it is %+v", err, s.truth("v"))
		}
		s.past = []Volume{attaching, attached, attached}
		if err := attachTo(t, m, "v", "one"); err != nil || !s.truth("v").Has("one") {
			t.Errorf("attached with %v, and it is %+v", err, s.truth("v"))
		}
	})
}
