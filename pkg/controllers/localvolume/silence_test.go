package localvolume

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// silenced creates a volume on node-0, and then stops its worker.
func (c *calm) silenced() *backends.Volume {
	c.Helper()
	works, stopWorker := context.WithCancel(c.ctx)
	c.background.Go(func() { c.nodes["node-0"].run(works) })
	v, err := c.create(c.masters[0], wanted("volume", "node-0"))
	if err != nil {
		c.Fatal(err)
	}
	stopWorker()
	c.sleep(5 * time.Second)
	return v
}

// within makes a call with a timeout.
func (c *calm) within(limit time.Duration, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	return call(ctx)
}

// again makes calls with a timeout until one has a final answer, for at most twenty minutes.
func (c *calm) again(limit time.Duration, call func(ctx context.Context) error) (err error) {
	for began := time.Now(); time.Since(began) < 20*time.Minute; c.sleep(5 * time.Second) {
		if err = c.within(limit, call); err == nil || isFinal(err) {
			return err
		}
	}
	return err
}

// TestShortCallsHearOfSilence checks that a worker that does not run is detected even by calls that are shorter than
// beginsWithin.
func TestShortCallsHearOfSilence(t *testing.T) {
	inCalm(t, func(c *calm) {
		v, service := c.silenced(), edge(c.masters[0])
		err := c.again(15*time.Second, func(ctx context.Context) error {
			_, err := service.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: v.Handle})
			return err
		})
		if !backends.Is(err, backends.InUse) {
			t.Errorf("a snapshot on a silent node says %v", err)
		}
		c.start("node-1")
		err = c.again(15*time.Second, func(ctx context.Context) error {
			_, err := service.Create(ctx, wanted("other", ""), backends.ContentSource{})
			return err
		})
		if err != nil {
			t.Errorf("node-1 has room, and a volume says %v", err)
		}
	})
}

// TestSilentNodesAreAskedLast checks that nodes whose workers do not run, but which last reported the most room, do not
// keep a volume from another node forever, and that their room is not offered.
func TestSilentNodesAreAskedLast(t *testing.T) {
	inCalm(t, func(c *calm) {
		n := &node{simulation: c.simulation, name: "node-3", room: 10 * mib, volumes: map[string]thing{},
			snapshots: map[string]thing{}, locks: map[string]*sync.Mutex{}}
		c.nodes["node-3"] = n
		c.setReady("node-3", corev1.ConditionTrue)
		c.background.Go(func() { n.report(c.ctx) })
		c.sleep(10 * time.Second)
		c.start("node-3")
		err := c.again(time.Minute, func(ctx context.Context) error {
			_, err := edge(c.masters[0]).Create(ctx, wanted("volume", ""), backends.ContentSource{})
			return err
		})
		if on := c.have("volume"); err != nil || len(on) != 1 || on[0] != "node-3" {
			t.Errorf("the volume is on %v, want node-3, which alone has a worker: %v", on, err)
		}
		room, err := c.masters[0].Capacity(c.ctx, backends.CapacityQuery{Parameters: &local.Parameters{}})
		if err != nil || room.AvailableBytes >= 20*mib {
			t.Errorf("the room of silent nodes is offered: %+v, %v", room, err)
		}
		c.start("node-0")
		if _, err := c.create(c.masters[0], wanted("another", "node-0")); err != nil {
			t.Errorf("node-0 has a worker again: %v", err)
		}
		if c.masters[0].silence.isSilent("node-0") {
			t.Error("node-0 is taken for silent still")
		}
	})
}

// TestWaitingCreationMakesNothingAnew checks that a waiting creation ends once another call has withdrawn its order:
// that call may have reported that nothing exists.
func TestWaitingCreationMakesNothingAnew(t *testing.T) {
	inCalm(t, func(c *calm) {
		v, service := c.silenced(), edge(c.masters[0])
		waited := make(chan error, 1)
		c.background.Go(func() {
			waited <- c.within(time.Minute, func(ctx context.Context) error {
				_, err := service.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: v.Handle})
				return err
			})
		})
		c.sleep(5 * time.Second)
		if err := service.DeleteSnapshot(c.ctx, local.SnapshotHandle("s")); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; !backends.Is(err, backends.Busy) {
			t.Errorf("the creation says %v", err)
		}
		c.start("node-0")
		c.sleep(time.Minute)
		c.checkSnapshotIsNowhere(local.SnapshotHandle("s"), "was deleted")
	})
}

// TestTwoCallersDoNotFight checks that two masters with requests for the same name in different places do not withdraw
// each other's order in a busy loop.
func TestTwoCallersDoNotFight(t *testing.T) {
	inCalm(t, func(c *calm) {
		before := c.written()
		for i, m := range c.masters {
			c.background.Go(func() { _, _ = c.create(m, wanted("volume", []string{"node-0", "node-1"}[i])) }) // No worker runs.
		}
		c.sleep(2 * time.Minute)
		if n := c.written() - before; n > 20 {
			t.Errorf("%d objects were written within a minute", n)
		}
	})
}

// written returns the number of orders that the masters have written.
func (s *simulation) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uids
}
