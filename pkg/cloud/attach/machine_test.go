package attach

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/names"
	"github.com/stowage-csi/stowage/pkg/failure"
)

func machine(s *sim) *Machine {
	return New(s, Options{PerNode: 3, InAll: 5, Timeout: 5 * time.Second, Settle: 10 * time.Second, Remember: time.Minute,
		Now: s.Now, Names: names.New([]string{"a", "b", "c", "d", "e", "f", "g", "h"})})
}

// within runs a call with a deadline, which the call must keep.
func within(t *testing.T, d time.Duration, call func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	if took := time.Since(began); took > d {
		t.Errorf("a call with %v of time took %v", d, took)
	}
	return err
}

func attachTo(t *testing.T, m *Machine, volume, node string) error {
	t.Helper()
	return within(t, time.Minute, func(ctx context.Context) error {
		a, err := m.Attach(ctx, Request{Volume: volume, Node: node})
		if err == nil && (a.Node != node || a.State != Attached || a.Name == "") {
			t.Errorf("attached is %+v, want a name on node %q", a, node)
		}
		return err
	})
}

func TestAttachAndDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		s.add("v", false)
		m := machine(s)
		for range 2 {
			if err := attachTo(t, m, "v", "one"); err != nil {
				t.Fatal(err)
			}
		}
		if err := attachTo(t, m, "v", "two"); !failure.Is(err, failure.InUse) || !strings.Contains(err.Error(), `"one"`) {
			t.Errorf("attaching to a second node: %v, want InUse and the first one's name", err)
		}
		if have := s.truth("v"); len(have.Attachments) != 1 || s.asked["attach v to one"] != 2 ||
			s.asked["attach v to two"] != 0 {
			t.Errorf("the volume is %+v after the requests %v", have, s.asked)
		}
		for _, node := range []string{"two", "one", "one", ""} {
			if err := m.Detach(t.Context(), Request{Volume: "v", Node: node}); err != nil {
				t.Errorf("detaching from %q: %v", node, err)
			}
		}
		if have := s.truth("v"); len(have.Attachments) != 0 || s.asked["detach v from two"] != 1 {
			t.Errorf("the volume is %+v after the requests %v", have, s.asked)
		}
		for _, err := range []error{attachTo(t, m, "no-such-volume", "one"),
			m.Detach(t.Context(), Request{Volume: "no-such-volume", Node: "one"})} {
			if !failure.Is(err, failure.NotFound) {
				t.Errorf("a volume that is not there: %v, want NotFound", err)
			}
		}
	})
}

func TestDetachingElsewhereIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(2)
		s.add("v", false)
		if err := attachTo(t, machine(s), "v", "one"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Detach(t.Context(), "v", "one"); err != nil {
			t.Fatal(err)
		}
		if err := attachTo(t, machine(s), "v", "two"); err != nil {
			t.Errorf("while it leaves another node: %v", err)
		}
	})
}

func TestSharedVolumeHasManyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(3)
		s.add("v", true)
		m := machine(s)
		for _, node := range []string{"one", "two", "three"} {
			if _, err := m.Attach(t.Context(), Request{Volume: "v", Node: node}); err != nil {
				t.Errorf("attaching to node %q too: %v", node, err)
			}
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: ""}); err != nil || len(s.truth("v").Attachments) != 0 {
			t.Errorf("detached from every node: %v, and the volume is %+v", err, s.truth("v"))
		}
	})
}

func TestNameThatOthersTookIsAvoided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(4)
		s.add("v", false)
		s.add("theirs", false)
		blind := &blindCloud{sim: s}
		m := New(blind, Options{PerNode: 1, InAll: 1, Timeout: time.Second, Settle: time.Second,
			Names: names.New([]string{"a", "b"})})
		if err := s.serveAttach("theirs", "one", "a"); err != nil {
			t.Fatal(err)
		}
		a, err := m.Attach(t.Context(), Request{Volume: "v", Node: "one"})
		if err != nil || a.Name != "b" {
			t.Errorf("got %+v, %v; want the name b", a, err)
		}
	})
}

// A cloud says "invalid value" for more than a taken name: only some names are tried, and the cloud's reason is
// reported.
func TestNotEveryNameIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(4)
		s.choosy = true
		s.add("v", false)
		err := attachTo(t, machine(s), "v", "one")
		if !failure.Is(err, failure.Unavailable) || !errors.Is(err, ErrNameTaken) || s.asked["attach v to one"] != mostNames {
			t.Errorf("got %v after %d requests, want Unavailable after %d", err, s.asked["attach v to one"], mostNames)
		}
	})
}

// blindCloud does not show the names of other disks.
type blindCloud struct{ *sim }

func (blindCloud) Taken(context.Context, string) ([]string, error) { return nil, nil }

func TestLimitIsExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(5)
		s.limit = 1
		s.add("v", false)
		s.add("w", false)
		m := machine(s)
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		if err := attachTo(t, m, "w", "one"); !failure.Is(err, failure.Exhausted) {
			t.Errorf("one more than the limit: %v, want Exhausted", err)
		}
	})
}

// TestAttachmentThatIsNotShownYet begins an attachment, leaves, and detaches before the cloud shows the attachment.
func TestAttachmentThatIsNotShownYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(6)
		s.lag = 4 * time.Second
		s.add("v", false)
		m := machine(s)
		err := within(t, 200*time.Millisecond, func(ctx context.Context) error {
			_, err := m.Attach(ctx, Request{Volume: "v", Node: "one"})
			return err
		})
		if !failure.Is(err, failure.Busy) {
			t.Fatalf("in too short a time: %v, want Busy", err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // The clock is the test's own.
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil || len(s.truth("v").Attachments) != 0 {
			t.Errorf("detached with %v, and the volume is %+v", err, s.truth("v"))
		}
	})
}

// TestRefusalIsNotWaitedFor detaches right after the cloud has refused to attach.
func TestRefusalIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(8)
		s.add("v", false)
		m := New(refusing{s}, machine(s).options)
		if err := attachTo(t, m, "v", "one"); !failure.Is(err, failure.Busy) {
			t.Fatalf("refused: %v, want Busy", err)
		}
		if err := within(t, time.Second,
			func(ctx context.Context) error { return m.Detach(ctx, Request{Volume: "v", Node: "one"}) }); err != nil {
			t.Errorf("detaching what was never attached: %v", err)
		}
	})
}

// refusing refuses every attachment for now.
type refusing struct{ *sim }

func (refusing) Attach(context.Context, string, string, string) (time.Time, error) {
	return time.Time{}, failure.Errorf(failure.Busy, "the volume is being made")
}

func TestSlotsBoundWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(7)
		m := machine(s)
		var group sync.WaitGroup
		for i := range 8 {
			volume := fmt.Sprint("v", i)
			s.add(volume, false)
			group.Go(func() {
				if err := attachTo(t, m, volume, "one"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if s.most != 3 {
			t.Errorf("%d attachments were under way on one node, want 3", s.most)
		}
		if len(m.attaching.nodes) != 0 {
			t.Errorf("%d nodes are still remembered", len(m.attaching.nodes))
		}
	})
}

// TestUnderFaults attaches and detaches at random in a cloud that loses, throttles and repeats requests, gets stuck,
// and shows changes late. Whatever the Machine reports must be true. Once the faults are over, everything must succeed.
func TestUnderFaults(t *testing.T) {
	const seeds = 60
	successes := 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) { successes += underFaults(t, seed) })
	}
	if successes < 40*seeds {
		t.Errorf("%d calls succeeded in spite of the faults: too few to tell anything", successes)
	}
}

func underFaults(t *testing.T, seed uint64) (successes int) {
	s := newSim(seed)
	s.faulty = true
	s.lag = []time.Duration{0, 0, 500 * time.Millisecond, 3 * time.Second}[seed%4]
	s.back = seed%8 > 3 && s.lag > 0
	m := machine(s)
	volumes, nodes := []string{"v", "w", "x", "y"}, []string{"one", "two", "three"}
	for _, volume := range volumes {
		s.add(volume, false)
	}
	var group sync.WaitGroup
	for worker := range 8 {
		random := rand.New(rand.NewPCG(seed, uint64(worker)))
		group.Go(func() {
			for range 30 {
				volume, node := volumes[random.IntN(len(volumes))], nodes[random.IntN(len(nodes))]
				patience := time.Duration(random.IntN(20_000)) * time.Millisecond
				var err error
				if random.IntN(2) == 0 {
					err = within(t, patience, func(ctx context.Context) error { return m.attachChecked(ctx, t, s, volume, node) })
				} else {
					err = within(t, patience, func(ctx context.Context) error { return m.detachChecked(ctx, t, s, volume, node) })
				}
				allowed := []failure.Kind{failure.Busy, failure.Unavailable, failure.InUse}
				if err == nil {
					s.mu.Lock()
					successes++
					s.mu.Unlock()
				} else if !slices.Contains(allowed, failure.KindOf(err)) {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	group.Wait()
	s.mu.Lock()
	s.faulty = false
	s.mu.Unlock()
	for _, volume := range volumes {
		settle(t, seed, func(ctx context.Context) error { return m.detachChecked(ctx, t, s, volume, "") })
		settle(t, seed, func(ctx context.Context) error { return m.attachChecked(ctx, t, s, volume, "one") })
	}
	if len(s.illegal) > 0 {
		t.Errorf("seed %d: it should not have asked for %q", seed, s.illegal)
	}
	return successes
}

// attachChecked attaches and, on success, compares with the truth. It searches the history from s.lag before the call
// on, because others may have detached the volume meanwhile.
func (m *Machine) attachChecked(ctx context.Context, t *testing.T, s *sim, volume, node string) error {
	began := time.Now()
	_, err := m.Attach(ctx, Request{Volume: volume, Node: node})
	if err == nil && !s.wasSince(volume, began.Add(-s.lag),
		func(v Volume) bool { a, ok := v.on(node); return ok && a.State == Attached }) {
		t.Errorf("volume %q is said to be attached to %q and is %+v", volume, node, s.truth(volume))
	}
	return err
}

func (m *Machine) detachChecked(ctx context.Context, t *testing.T, s *sim, volume, node string) error {
	began := time.Now()
	err := m.Detach(ctx, Request{Volume: volume, Node: node})
	if err == nil && !s.wasSince(volume, began.Add(-s.lag), func(v Volume) bool { return !v.Has(node) }) {
		t.Errorf("volume %q is said to be detached from %q and is %+v", volume, node, s.truth(volume))
	}
	return err
}

// wasSince reports whether the volume was in that state at some time since then.
func (s *sim) wasSince(volume string, since time.Time, so func(Volume) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.history[volume]
	for i, m := range h {
		if so(m.v) && (i == len(h)-1 || !h[i+1].at.Before(since)) {
			return true
		}
	}
	return false
}

// settle repeats a call as an orchestrator does. It must succeed before long, though something may be stuck for a
// while.
func settle(t *testing.T, seed uint64, call func(ctx context.Context) error) {
	t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < 2*time.Minute; {
		if err = within(t, 20*time.Second, call); err == nil {
			return
		}
		time.Sleep(time.Second) //nolint:forbidigo // The clock is the test's own.
	}
	t.Errorf("seed %d: after the faults it still fails: %v", seed, err)
}
