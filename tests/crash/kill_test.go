package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// plan is one planned kill.
type plan struct {
	after    time.Duration // since the driver's first answer, or its start
	starting bool          // after counts from the start: the driver dies while it repairs the effects of the last kill
	children bool          // the child processes are killed too, as in a container; otherwise they continue, as on a host
}

func nextPlan(rng *rand.Rand) plan {
	p := plan{children: rng.IntN(2) == 0, after: between(rng, 50*time.Millisecond, 500*time.Millisecond)}
	if rng.IntN(6) == 0 {
		p.starting = true
		p.after = between(rng, 0, 40*time.Millisecond)
	}
	return p
}

func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)))
}

func (p plan) String() string {
	since, who := "its first answer", "alone"
	if p.starting {
		since = "its start"
	}
	if p.children {
		who = "with its children"
	}
	return fmt.Sprintf("%s after %s, %s", p.after.Round(time.Millisecond), since, who)
}

// killAgainAndAgain kills the driver and restarts it at once, until there were enough kills or a violation. On a slow
// machine it makes more kills than planned, so that the required events occur. The driver is running before and after.
func (r *run) killAgainAndAgain() {
	rng, begun := rand.New(rand.NewPCG(r.seed, 1<<32)), time.Now()
	for n := 1; r.life.Err() == nil && (n <= *kills || len(r.tally.lacks()) > 0 && time.Since(begun) < hangLimit); n++ {
		p := nextPlan(rng)
		if err := r.killOnce(n, p); err != nil {
			r.violated(nil, err)
			return
		}
	}
}

func (r *run) killOnce(n int, p plan) error {
	if p.starting {
		// The running driver is killed first, because it must be started.
		if err := r.driver.Kill(p.children); err != nil {
			return err
		}
		if err := r.driver.Spawn(r.life); err != nil {
			return err
		}
	}
	pause(r.life, p.after)
	if err := r.driver.Kill(p.children); err != nil {
		return err
	}
	r.tally.kill(p)
	r.history.add("kill %d of %d, %s", n, *kills, p)
	took, err := r.start()
	if err != nil {
		return err
	}
	r.history.add("the driver answers again after %s", took.Round(time.Millisecond))
	return nil
}

// start starts the driver and records the time until its first answer.
func (r *run) start() (time.Duration, error) {
	took, err := r.driver.Start(context.WithoutCancel(r.life))
	if err == nil {
		r.tally.started(took)
	}
	return took, err
}

func (r *run) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.life), 2*time.Minute)
	defer cancel()
	if err := r.driver.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// pause waits for d or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
