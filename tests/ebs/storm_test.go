package ebs

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/history"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

const (
	// users is the number of concurrent users with their own volumes, and rivals that of users of the same volume.
	users, rivals = 4, 3
	// longest is a sidecar's longest time limit for a call, and the longest delay of a request.
	longest = time.Minute
)

// storm is a cloud full of faults, and users that use volumes as an orchestrator does: each call has a deadline and is
// repeated until it succeeds, and a caller relies on a volume's existence once it was told so.
type storm struct {
	*testing.T
	*region.Region
	weather
	history.History
	seed     uint64
	instance atomic.Pointer[backends.Instance]
	calm     atomic.Bool
}

// ordinary returns the configuration of a cloud with EC2's durations.
func ordinary() fake.Config {
	config := region.Quick()
	config.Create, config.Delete, config.Modify = 2*time.Second, 5*time.Second, 10*time.Second
	config.Attach, config.Detach, config.Snapshot = 3*time.Second, 4*time.Second, 20*time.Second
	return config
}

// region returns a cloud with that weather.
func (w weather) region(tb testing.TB, seed uint64) *region.Region {
	tb.Helper()
	config := ordinary()
	config.Unsteady, config.Lag, config.Troubles = w.back, w.lag,
		fake.Troubles{Stuck: w.stuck, For: 10 * time.Minute, Doomed: w.doomed, Seed: seed}
	r := region.New(tb, config, seed)
	r.Proxy.Random(w.chances, longest)
	return r
}

// faultsIn counts the faults so far.
func faultsIn(r *region.Region) int { return r.Proxy.Faults() + r.Server.Troubled() }

func newStorm(t *testing.T, w weather, seed uint64) *storm {
	s := &storm{T: t, weather: w, seed: seed, Region: w.region(t, seed)}
	s.start()
	return s
}

// start starts a new process without any memory. Requests of the previous process may still arrive.
func (s *storm) start() {
	s.Helper()
	d := ebs.Definition()
	options := backends.Options{Driver: "ebs.csi.stowage.dev", DataDir: s.TempDir(), Config: d.NewConfig(),
		Log: slog.New(slog.DiscardHandler)}
	timing := options.Config.(*ebs.Config).Timing
	s.Configure(&options)
	options.Config.(*ebs.Config).Timing = timing
	instance, err := d.Open(s.Context(), options)
	if err != nil {
		s.Fatal(err)
	}
	s.instance.Store(instance)
}

// run runs the users until enough faults have occurred, and then lets all of them finish.
func (s *storm) run(sum *totals) {
	began := time.Now()
	var group sync.WaitGroup
	for user := range users {
		group.Go(func() { s.useVolumes(user) })
	}
	contended := s.create("contended", s.random(100))
	for rival := range rivals {
		group.Go(func() { s.contend(contended, rival) })
	}
	for round := range s.crashes + 1 {
		if round > 0 {
			s.start()
		}
		s.until(s.enough * (round + 1) / (s.crashes + 1))
	}
	s.Proxy.Stop()
	s.Server.Calm()
	s.calm.Store(true)
	group.Wait()
	random := s.random(101)
	s.call(history.Call{Op: history.Detach, Volume: contended, Contended: true}, random,
		func(ctx context.Context, i *backends.Instance) (string, error) {
			return "", i.Controller.(backends.Attacher).Detach(ctx, contended, "")
		})
	s.delete("contended", contended, random)
	<-time.After(2 * longest) // Delayed requests have arrived.
	s.judge(sum, time.Since(began))
}

// judge checks the final state.
func (s *storm) judge(sum *totals, took time.Duration) {
	defer func() {
		if s.Failed() {
			s.Logf("to repeat it: -run '%s' -schedules 1 -seed %d", s.Name(), s.seed)
		}
	}()
	for _, wrong := range s.Check(s.Server.Past(), s.crashes > 0) {
		s.Errorf("VIOLATION: %v", wrong)
	}
	left := s.Server.Snapshots()
	// CreateSnapshot has no client token. If its request arrives after its process has died, and after the next process
	// has created and deleted a snapshot of that name, the snapshot belongs to no one, and no driver can prevent that.
	if len(left) > users*s.crashes {
		s.Errorf("VIOLATION: %d processes have died, and there are the snapshots %v", s.crashes, left)
	}
	for _, v := range s.Server.Volumes() { // The history checks the intact ones.
		if v.State != "error" {
			continue
		}
		if sum.broken++; len(s.chances) == 0 {
			s.Errorf("VIOLATION: %s could not be made, and was left", v.ID)
		}
	}
	all, failed := s.Calls()
	sum.schedules++
	sum.calls, sum.failed, sum.snapshots = sum.calls+all, sum.failed+failed, sum.snapshots+len(left)
	sum.requests, sum.faults, sum.simulated = sum.requests+len(s.Proxy.Log()), sum.faults+faultsIn(s.Region),
		sum.simulated+took
}

// until waits until the given number of faults has occurred.
func (s *storm) until(faults int) {
	s.Helper()
	for end := time.Now().Add(6 * time.Hour); faultsIn(s.Region) < faults; <-time.After(time.Second) {
		if time.Now().After(end) {
			s.Errorf("after six hours %d requests have met a fault, want %d", faultsIn(s.Region), faults)
			return
		}
	}
}

func (s *storm) random(user int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(user))) }

// action is a call of the backend. It returns the handle of the volume that it creates.
type action func(ctx context.Context, i *backends.Instance) (string, error)

// call repeats a call, each time with a deadline, until it succeeds. Only an open outcome may delay the success, and
// once the faults have ended, not for long.
func (s *storm) call(c history.Call, random *rand.Rand, do action) {
	s.Helper()
	for calm := 0; ; {
		err := s.once(c, limit(random), do)
		switch {
		case err == nil:
			return
		case !undecided(err):
			s.Errorf("%s %s%s: %v", c.Op, c.Name, c.Volume, err)
			return
		case s.calm.Load():
			if calm++; calm > 100 {
				s.Errorf("%s %s%s: not done long after the faults have ended: %v", c.Op, c.Name, c.Volume, err)
				return
			}
		}
		<-time.After(time.Duration(1+random.IntN(5000)) * time.Millisecond)
	}
}

// limit returns a caller's time limit.
func limit(random *rand.Rand) time.Duration {
	return time.Second + time.Duration(random.Int64N(int64(longest-time.Second)))
}

// undecided reports whether the outcome of a call is unknown, so that it must be repeated.
func undecided(err error) bool {
	return backends.Is(err, backends.Busy) || backends.Is(err, backends.Unavailable)
}

// once makes one call and records it.
func (s *storm) once(c history.Call, limit time.Duration, do action) error {
	c.Limit = limit
	return s.Note(c, func() (string, error) {
		ctx, cancel := context.WithTimeout(s.Context(), limit)
		defer cancel()
		return do(ctx, s.instance.Load())
	})
}
