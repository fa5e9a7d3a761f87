package attach

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/cloud/names"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// late is a cloud that the first request to attach or to detach reaches only a minute after it was sent, when its
// caller has left.
type late struct {
	*sim
	attach, detach bool          // the first request is still to come
	turn           time.Duration // how long the first request waits before it is sent
	after          time.Duration // how long it is under way, if not a minute
}

const delay = time.Minute

// lose sends the first request, which calls arrive, and returns when its caller gives it up.
func (l *late) lose(ctx context.Context, arrive func(context.Context)) error {
	err := flight.Turn(ctx, func(context.Context) error {
		<-time.After(l.turn)
		return nil
	})
	if err != nil {
		return err
	}
	time.AfterFunc(cmp.Or(l.after, delay), func() { arrive(context.WithoutCancel(ctx)) })
	<-ctx.Done()
	return failure.Errorf(failure.Unavailable, "no answer")
}

func lateMachine(l *late) *Machine {
	return New(l, Options{PerNode: 2, InAll: 10, Timeout: 10 * time.Second, Settle: 2 * time.Minute,
		Names: names.New([]string{"a", "b"})})
}

func (l *late) Attach(ctx context.Context, volume, node, name string) (time.Time, error) {
	if !l.attach {
		return l.sim.Attach(ctx, volume, node, name)
	}
	l.attach = false
	return time.Time{}, l.lose(ctx, func(ctx context.Context) { _, _ = l.sim.Attach(ctx, volume, node, name) })
}

func (l *late) Detach(ctx context.Context, volume, node string) (time.Duration, error) {
	if !l.detach {
		return l.sim.Detach(ctx, volume, node)
	}
	l.detach = false
	return 0, l.lose(ctx, func(ctx context.Context) { _, _ = l.sim.Detach(ctx, volume, node) })
}

// attachForGood attaches a volume whose earlier detachment may still arrive, and checks that it stays attached.
func attachForGood(t *testing.T, l *late, m *Machine, r Request) {
	t.Helper()
	if _, err := m.Attach(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * delay)
	if have := l.truth(r.Volume).Attachments; len(have) != 1 || have[0].State != Attached {
		t.Errorf("it was attached, and is %+v", have)
	}
}

// A volume that is reported as detached stays detached, whatever was sent before.
func TestAttachmentThatArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{sim: newSim(1), attach: true}
		l.add("v", false)
		m := lateMachine(l)
		if err := attachTo(t, m, "v", "one"); !failure.Is(err, failure.Unavailable) {
			t.Fatalf("without an answer: %v, want Unavailable", err)
		}
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * delay)
		if have := l.truth("v").Attachments; len(have) != 0 {
			t.Errorf("it was detached, and is %+v again", have)
		}
	})
}

// A volume that is reported as attached stays attached, whatever was sent before.
func TestDetachmentThatArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{sim: newSim(1), detach: true}
		l.add("v", false)
		m := lateMachine(l)
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		for err := m.Detach(t.Context(),
			Request{Volume: "v", Node: "one"}); err != nil; err = m.Detach(t.Context(), Request{Volume: "v", Node: "one"}) {
			if !failure.Is(err, failure.Unavailable) {
				t.Fatal(err)
			}
		}
		hurried := within(t, time.Second, func(ctx context.Context) error {
			_, err := m.Attach(ctx, Request{Volume: "v", Node: "one"})
			return err
		})
		if !failure.Is(hurried, failure.Busy) {
			t.Errorf("attached again at once: %v, want Busy", hurried)
		}
		synctest.Wait() // The call has ended, too.
		if err := attachTo(t, m, "v", "two"); err != nil {
			t.Errorf("to another node, which the late request does not concern: %v", err)
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "two"}); err != nil {
			t.Fatal(err)
		}
		attachForGood(t, l, m, Request{Volume: "v", Node: "one"})
	})
}

// A late detachment that named no node may concern any node.
func TestDetachmentFromAnyNodeThatArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{sim: newSim(1)}
		l.add("v", false)
		m := lateMachine(l)
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
			t.Fatal(err)
		}
		l.detach = true
		if err := m.Detach(t.Context(), Request{Volume: "v"}); err != nil {
			t.Fatal(err)
		}
		attachForGood(t, l, m, Request{Volume: "v", Node: "one"})
	})
}

// A volume that is to be detached and then wanted again stays attached only if the detachment can no longer arrive.
func TestDetachmentThatArrivesAfterAChangeOfMind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{sim: newSim(1), detach: true}
		l.add("v", false)
		m := lateMachine(l)
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); !failure.Is(err, failure.Unavailable) {
			t.Fatalf("without an answer: %v, want Unavailable", err)
		}
		seen := l.truth("v")
		hurried := within(t, time.Second, func(ctx context.Context) error {
			_, err := m.Attach(ctx, Request{Volume: "v", Node: "one", Seen: &seen})
			return err
		})
		if !failure.Is(hurried, failure.Busy) {
			t.Errorf("wanted again at once: %v, want Busy", hurried)
		}
		synctest.Wait() // The call has ended, too.
		attachForGood(t, l, m, Request{Volume: "v", Node: "one", Seen: &seen})
	})
}

// A request that waits for its turn is sent later than it was asked for, and may arrive that much later.
func TestDetachmentThatWaitedArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{sim: newSim(1), detach: true, turn: 9 * time.Second, after: 119 * time.Second}
		l.add("v", false)
		m := lateMachine(l)
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); !failure.Is(err, failure.Unavailable) {
			t.Fatalf("without an answer: %v, want Unavailable", err)
		}
		attachForGood(t, l, m, Request{Volume: "v", Node: "one"})
	})
}

// The same is true of a request to attach.
func TestAttachmentThatWaitedArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{sim: newSim(1), attach: true, turn: 9 * time.Second, after: 119 * time.Second}
		l.add("v", false)
		m := lateMachine(l)
		if err := attachTo(t, m, "v", "one"); !failure.Is(err, failure.Unavailable) {
			t.Fatalf("without an answer: %v, want Unavailable", err)
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * delay)
		if have := l.truth("v").Attachments; len(have) != 0 {
			t.Errorf("it was detached, and is %+v again", have)
		}
	})
}
