package ebs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
)

// workers is how many use volumes at a time, each its own.
const workers = 6

// patience is how long after its deadline a call may come back, on a busy machine.
const patience = 1500 * time.Millisecond

// storm is a world full of faults, and those who use volumes in it as an orchestrator does: each call has a deadline and is
// repeated until it succeeds, and who is told that a volume is there relies on it.
type storm struct {
	*testing.T
	*world
	seed     uint64
	instance atomic.Pointer[backends.Instance]
	calm     atomic.Bool
	calls    atomic.Int64
	lost     atomic.Int64 // calls that ended without a verdict
}

func TestUnderFaults(t *testing.T) {
	for seed, row := range []struct {
		name    string
		lag     time.Duration
		crashes int
	}{
		{"shown at once", 0, 0},
		{"shown late", 80 * time.Millisecond, 0},
		{"with crashes", 0, 3},
		{"shown late, with crashes", 80 * time.Millisecond, 3},
	} {
		t.Run(row.name, func(t *testing.T) { newStorm(t, uint64(seed), row.lag).run(row.crashes) })
	}
}

func newStorm(t *testing.T, seed uint64, lag time.Duration) *storm {
	config := quick()
	config.Lag = lag
	s := &storm{T: t, seed: seed, world: newWorld(t, config, seed)}
	s.start()
	s.proxy.Random(map[faults.Kind]int{
		faults.Throttle: 60, faults.Fail: 20, faults.FailAfter: 20, faults.LoseRequest: 20, faults.LoseReply: 30,
		faults.Duplicate: 20, faults.Delay: 40, faults.Truncate: 15, faults.Hang: 2,
	}, 200*time.Millisecond)
	return s
}

// start begins a new process, which remembers nothing. What the one before it has sent may still arrive.
func (s *storm) start() {
	s.Helper()
	d := ebs.Definition()
	options := backends.Options{Driver: "ebs.csi.stowage.dev", DataDir: s.TempDir(), Config: d.NewConfig(), Log: slog.New(slog.DiscardHandler)}
	s.configure(&options)
	instance, err := d.Open(s.Context(), options)
	if err != nil {
		s.Fatal(err)
	}
	s.instance.Store(instance)
}

func (s *storm) run(crashes int) {
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() { s.useVolumes(worker) })
	}
	contended := s.create("contended", s.random(100))
	for worker := range 3 {
		group.Go(func() { s.contend(contended, worker) })
	}
	for round := range crashes + 1 {
		if round > 0 {
			s.start()
		}
		s.until(enough * (round + 1) / (crashes + 1))
	}
	s.proxy.Stop()
	s.calm.Store(true)
	group.Wait()
	s.repeat("deleting the contended one", s.random(101), func(ctx context.Context, i *backends.Instance) error {
		return errors.Join(i.Controller.(backends.Attacher).Detach(ctx, contended, ""), i.Controller.Delete(ctx, contended))
	})
	s.Logf("%d calls, %d of them without a verdict; %d of %d requests met a fault", s.calls.Load(), s.lost.Load(), s.proxy.Faults(), len(s.proxy.Log()))
	if s.lost.Load() < 10 {
		s.Error("this was no storm")
	}
	<-time.After(500 * time.Millisecond) // what was delayed has arrived, and what is deleted is gone
	for _, v := range s.server.Volumes() {
		if v.State != "error" {
			s.Errorf("a volume was leaked: %+v", v)
		}
	}
	switch left := s.server.Snapshots(); {
	case len(left) > 0 && crashes == 0:
		s.Errorf("snapshots were leaked: %v", left)
	case len(left) > workers*crashes:
		s.Errorf("more snapshots were leaked than were under way when a process died: %v", left)
	case len(left) > 0:
		// CreateSnapshot has no client token: one that arrives after its process has died, and after the next process has
		// made and deleted a snapshot of that name, is nobody's.
		s.Logf("snapshots were leaked by crashes, which EC2's API does not let a driver prevent: %v", left)
	}
}

// enough is how many requests are to meet a fault.
const enough = 150

// until waits for so many faults, however fast the machine is.
func (s *storm) until(faults int) {
	s.Helper()
	for end := time.Now().Add(time.Minute); s.proxy.Faults() < faults; <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.Errorf("after a minute %d requests have met a fault, want %d", s.proxy.Faults(), faults)
			return
		}
	}
}

func (s *storm) random(worker int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(worker))) }

// undecided tells whether the outcome of a call is open, so that it is to be repeated.
func undecided(err error) bool {
	return backends.Is(err, backends.Busy) || backends.Is(err, backends.Unavailable)
}

// repeat makes a call again and again, each time with a deadline, until it succeeds. Nothing but an open outcome may keep it
// from that.
func (s *storm) repeat(what string, random *rand.Rand, call func(ctx context.Context, i *backends.Instance) error) {
	s.Helper()
	for end := time.Now().Add(60 * time.Second); ; {
		limit := time.Duration(20+random.IntN(1500)) * time.Millisecond
		if s.calm.Load() {
			limit = 10 * time.Second
		}
		err := s.once(what, limit, call)
		switch {
		case err == nil:
			return
		case !undecided(err):
			s.Errorf("%s: %v", what, err)
			return
		case time.Now().After(end):
			s.Errorf("%s: still not done: %v", what, err)
			return
		}
		<-time.After(time.Duration(random.IntN(50)) * time.Millisecond)
	}
}

func (s *storm) once(what string, limit time.Duration, call func(ctx context.Context, i *backends.Instance) error) error {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	began := time.Now()
	err := call(ctx, s.instance.Load())
	if took := time.Since(began); took > limit+patience {
		s.Errorf("%s: a call with %v of time took %v", what, limit, took)
	}
	if s.calls.Add(1); undecided(err) {
		s.lost.Add(1)
	}
	return err
}

// create makes a volume, as package volume does.
func (s *storm) create(name string, random *rand.Rand) (handle string) {
	s.Helper()
	wanted := spec(name)
	wanted.Fingerprint = "fingerprint of " + name
	s.repeat("creating "+name, random, func(ctx context.Context, i *backends.Instance) error {
		v, err := i.Controller.Create(ctx, wanted)
		if backends.Is(err, backends.Exists) {
			if v, err = i.Controller.Find(ctx, wanted); backends.Is(err, backends.NotFound) {
				return backends.Errorf(backends.Busy, "it is gone again")
			}
		}
		if err != nil {
			return err
		}
		if v.Name != name || v.Fingerprint != wanted.Fingerprint || v.CapacityBytes != wanted.Capacity.RequiredBytes {
			s.Errorf("%s is made as %+v", name, v)
		}
		handle = v.Handle
		return nil
	})
	s.there(name, handle)
	return handle
}

// there checks that the volume, and no other, has the name.
func (s *storm) there(name, handle string) {
	s.Helper()
	var have []string
	for _, v := range s.server.Volumes() {
		if v.Tags["CSIVolumeName"] == name && v.State != "error" && v.State != "deleting" {
			have = append(have, v.ID)
		}
	}
	if !slices.Equal(have, []string{handle}) {
		s.Errorf("%s is handed out as %q, and there are %q", name, handle, have)
	}
}

// useVolumes makes volumes and uses them one after the other. Some names come again.
func (s *storm) useVolumes(worker int) {
	random := s.random(worker)
	for round := 0; !s.calm.Load(); round++ {
		name := fmt.Sprint("volume-", worker, "-", random.IntN(3))
		handle := s.create(name, random)
		if handle == "" {
			return
		}
		for range random.IntN(3) {
			s.attachAndDetach(name, handle, random)
		}
		for n := range random.IntN(3) {
			s.snapshot(fmt.Sprint("snapshot-", worker, "-", round, "-", n), handle, random)
		}
		s.there(name, handle)
		s.delete(name, handle, random)
	}
}

func (s *storm) attachAndDetach(name, handle string, random *rand.Rand) {
	node := []string{nodeA, nodeB}[random.IntN(2)]
	s.repeat("attaching "+name, random, func(ctx context.Context, i *backends.Instance) error {
		_, err := i.Controller.(backends.Attacher).Attach(ctx, request(handle, node))
		return err
	})
	if have := s.attached(handle); len(have) != 1 || have[node] != "attached" {
		s.Errorf("%s is said to be attached to %s and is %v", name, node, have)
	}
	s.repeat("detaching "+name, random, func(ctx context.Context, i *backends.Instance) error {
		return i.Controller.(backends.Attacher).Detach(ctx, handle, node)
	})
	if have := s.attached(handle); len(have) != 0 {
		s.Errorf("%s is said to be detached and is %v", name, have)
	}
}

func request(handle, node string) backends.AttachRequest {
	return backends.AttachRequest{Handle: handle, Node: node, Access: backends.Access{
		Types: []backends.AccessType{backends.Mount}, Modes: []backends.AccessMode{backends.SingleNodeWriter},
	}}
}

func (s *storm) attached(handle string) map[string]string {
	for _, v := range s.server.Volumes() {
		if v.ID == handle {
			return v.Instances
		}
	}
	return nil
}

func (s *storm) snapshot(name, volume string, random *rand.Rand) {
	var handle string
	s.repeat("taking "+name, random, func(ctx context.Context, i *backends.Instance) error {
		wanted := backends.SnapshotSpec{Name: name, Volume: volume}
		n, err := i.Controller.(backends.Snapshotter).CreateSnapshot(ctx, wanted)
		if backends.Is(err, backends.Exists) {
			n, err = i.Controller.(backends.Snapshotter).FindSnapshot(ctx, wanted)
		}
		if err == nil {
			handle = n.Handle
		}
		return err
	})
	s.repeat("deleting "+name, random, func(ctx context.Context, i *backends.Instance) error {
		return unlessGone(i.Controller.(backends.Snapshotter).DeleteSnapshot(ctx, handle))
	})
}

func (s *storm) delete(name, handle string, random *rand.Rand) {
	s.repeat("deleting "+name, random, func(ctx context.Context, i *backends.Instance) error {
		return unlessGone(i.Controller.Delete(ctx, handle))
	})
	for _, v := range s.server.Volumes() {
		if v.ID == handle && v.State != "deleting" {
			s.Errorf("%s is said to be deleted and is %+v", name, v)
		}
	}
}

func unlessGone(err error) error {
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	return err
}

// contend attaches and detaches a volume that others want too.
func (s *storm) contend(handle string, worker int) {
	random := s.random(200 + worker)
	for !s.calm.Load() {
		node := []string{nodeA, nodeB}[random.IntN(2)]
		limit := time.Duration(20+random.IntN(800)) * time.Millisecond
		err := s.once("contending", limit, func(ctx context.Context, i *backends.Instance) error {
			if random.IntN(2) == 0 {
				return i.Controller.(backends.Attacher).Detach(ctx, handle, node)
			}
			_, err := i.Controller.(backends.Attacher).Attach(ctx, request(handle, node))
			return err
		})
		if err != nil && !undecided(err) && !backends.Is(err, backends.InUse) {
			s.Errorf("contending: %v", err)
		}
		if have := s.attached(handle); len(have) > 1 {
			s.Errorf("the contended volume is attached to %v", have)
		}
	}
}
