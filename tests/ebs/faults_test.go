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

// weather is a class of faults: the chances, in a thousand requests, of each kind.
type weather struct {
	name    string
	chances map[faults.Kind]int
	lag     time.Duration // the age of the data that EC2 shows
	back    bool          // reads go back in time: each is as of a random instant, up to lag ago
	crashes int           // the number of restarts of the process
	stuck   int           // the number of EC2's transitions per thousand that take ten minutes longer
	doomed  int           // the number of new volumes per thousand that end in state error
	enough  int           // the number of faults that ends a schedule
}

// weathers returns each fault by itself, and the mixture of a bad day.
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
		all[i].enough = cmp.Or(all[i].enough, 40) // There are many requests.
	}
	return all
}

// Whatever happens to requests, volumes are used as if there were no faults, only later. Time is simulated: the
// durations are EC2's own, with creations of seconds and calls of a minute, and every deadline is exact.
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

// totals sums up the schedules of one weather.
type totals struct {
	schedules, calls, failed, requests, faults, snapshots, broken int
	simulated                                                     time.Duration
}

func (s totals) String() string {
	return fmt.Sprintf("%d schedules, %v of simulated time: %d calls, %d of them to be repeated; %d of %d requests met "+
		"a fault; %d snapshots leaked by crashes, and %d volumes left that could not be made",
		s.schedules, s.simulated.Round(time.Second), s.calls, s.failed, s.faults, s.requests, s.snapshots, s.broken)
}
