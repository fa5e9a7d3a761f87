package ebs

import (
	"cmp"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/faults"
)

var (
	schedules = flag.Int("schedules", 2, "how many schedules of each class of faults are run")
	suites    = flag.Int("suites", 0,
		"how often the conformance suite is run in each class; 0 for once, in the first only")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first schedule")
)

// weather is a class of faults: how many of a thousand requests meet which.
type weather struct {
	name    string
	chances map[faults.Kind]int
	lag     time.Duration // how old what EC2 shows is
	back    bool          // reads go back in time: each is as of another instant, up to lag ago
	crashes int           // how often the process ends
	stuck   int           // how many of a thousand of EC2's transitions take ten minutes longer
	doomed  int           // how many of a thousand volumes end in state error while they are made
	enough  int           // how much is to meet a fault before a schedule ends
}

// weathers are each fault by itself, and what a bad day brings.
func weathers() []weather {
	storm := map[faults.Kind]int{
		faults.Throttle: 60, faults.Fail: 20, faults.FailAfter: 20, faults.LoseRequest: 20, faults.LoseReply: 30,
		faults.Duplicate: 20, faults.Delay: 40, faults.Truncate: 15, faults.Hang: 5,
	}
	all := []weather{
		{name: "all of them", chances: storm},
		{name: "all, shown late", chances: storm, lag: 2 * time.Second},
		{name: "back in time", chances: map[faults.Kind]int{faults.Throttle: 20}, lag: 20 * time.Second, back: true},
		{name: "all, back in time", chances: storm, lag: 20 * time.Second, back: true},
		{name: "all, with crashes", chances: storm, crashes: 3},
		{name: "all, shown late, with crashes", chances: storm, lag: 2 * time.Second, crashes: 3},
		{name: "stuck states", stuck: 150, enough: 6},
		{name: "volumes that cannot be made", doomed: 150, enough: 6},
		{name: "all, stuck, that cannot be made", chances: storm, lag: time.Second, crashes: 1, stuck: 30, doomed: 50},
	}
	for kind := range storm {
		all = append(all, weather{name: string(kind), chances: map[faults.Kind]int{kind: 150}})
	}
	for i := range all {
		all[i].enough = cmp.Or(all[i].enough, 40) // Requests are many.
	}
	return all
}

// Whatever becomes of requests, volumes are used as if nothing had been the matter, only later. Time is simulated: the
// clock of the tests is EC2's own, with creations of seconds and calls of a minute, and every deadline is exact.
func TestUnderFaults(t *testing.T) {
	for _, w := range weathers() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			var sum totals
			for seed := *firstSeed; seed < *firstSeed+uint64(*schedules) && !t.Failed(); seed++ {
				synctest.Test(t, func(t *testing.T) { newStorm(t, w, seed).run(&sum) })
			}
			t.Log(sum)
		})
	}
}

// totals are what the schedules of one weather were.
type totals struct {
	schedules, calls, failed, requests, faults, snapshots, broken int
	simulated                                                     time.Duration
}

func (s totals) String() string {
	return fmt.Sprintf("%d schedules, %v of simulated time: %d calls, %d of them to be repeated; %d of %d requests met "+
		"a fault; %d snapshots leaked by crashes, and %d volumes left that could not be made",
		s.schedules, s.simulated.Round(time.Second), s.calls, s.failed, s.faults, s.requests, s.snapshots, s.broken)
}
