package wait

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

func TestLookIsAtOnceAndShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: 20 * time.Millisecond}
		w := New(options(), c.look)
		c.begin("waited for", 950*time.Millisecond)
		c.begin("there", 0)
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := w.Until(t.Context(), "do", "waited for", isDone); err != nil {
				t.Error(err)
			}
		})
		<-time.After(500 * time.Millisecond)
		for key, there := range map[string]bool{"there": true, "absent": false} {
			group.Go(func() {
				began := time.Now()
				if _, err := w.Look(t.Context(), key); there != (err == nil) || !there && !backends.Is(err, backends.NotFound) {
					t.Errorf("%s: %v", key, err)
				}
				if took := time.Since(began); took > 40*time.Millisecond {
					t.Errorf("%s: it took %v", key, took)
				}
			})
		}
		group.Wait()
		if len(c.looks[0]) < 2 {
			t.Errorf("the first look was for %v: what is waited for comes with it", c.looks[0])
		}
	})
}

// A failed look is returned to the caller, which may prefer not to retry.
func TestLookTellsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{outage: backends.Errorf(backends.Unavailable, "no answer")}
		if _, err := New(options(), c.look).Look(t.Context(), "a"); !backends.Is(err, backends.Unavailable) {
			t.Errorf("got %v, want Unavailable", err)
		}
	})
}

func TestLooksKeepTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		o := options()
		o.Gap = func(int) time.Duration { return 10 * time.Second }
		w := New(o, c.look)
		c.begin("a", 0)
		began := time.Now()
		for range 4 {
			if _, err := w.Look(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 30*time.Second || len(c.looks) != 4 {
			t.Errorf("4 looks took %v and %d requests, want 30s and 4", took, len(c.looks))
		}
	})
}

// A caller with a deadline gets a result while it has time to act on it, even inside an operation that may outlive the
// caller.
func TestTheGapLeavesTimeToAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		o := options()
		o.Gap = func(int) time.Duration { return time.Minute }
		w := New(o, c.look)
		c.begin("a", 0)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			var group flight.Group[bool]
			_, err := group.Do(ctx, flight.Op{Key: "a"}, func(ctx context.Context) (bool, error) { return w.Look(ctx, "a") })
			left := time.Until(deadlineOf(ctx))
			cancel()
			if err != nil || left < 5*time.Second {
				t.Errorf("got %v with %v left", err, left)
			}
		}
	})
}

func deadlineOf(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}

func TestWhatIsTooMuchIsLeftToTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: time.Millisecond}
		o := options()
		o.Batch = batch.Options{Max: 3}
		w := New(o, c.look)
		var group sync.WaitGroup
		for i := range 10 {
			key := fmt.Sprint(i)
			c.begin(key, 0)
			group.Go(func() {
				if _, err := w.Look(t.Context(), key); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		asked := 0
		for _, look := range c.looks {
			if asked += len(look); len(look) > 3 {
				t.Errorf("one look was for %v", look)
			}
		}
		if asked != 10 {
			t.Errorf("the looks were for %v, want each thing once", c.looks)
		}
	})
}

// Stuck things fill more than one request: others are seen all the same.
func TestStuckThingsKeepNobodyFromBeingSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: time.Millisecond}
		o := options()
		o.Batch = batch.Options{Max: 3}
		w := New(o, c.look)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i := range 7 {
			key := fmt.Sprint("stuck ", i)
			c.begin(key, time.Hour)
			go func() { _, _ = w.Until(ctx, "do", key, isDone) }()
		}
		<-time.After(10 * time.Second)
		c.begin("quick", time.Second)
		began := time.Now()
		if _, err := w.Until(ctx, "do", "quick", isDone); err != nil {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		if _, err := w.Look(ctx, "quick"); err != nil || time.Since(began) > 20*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A request that hangs delays no later caller. Its late result does not replace newer results.
func TestSlowLooksAreOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		var begun atomic.Bool
		o := options()
		o.Slow = time.Second
		w := New(o, func(ctx context.Context, keys []string) ([]batch.Result[bool], error) {
			results, err := c.look(ctx, keys)
			if begun.CompareAndSwap(false, true) {
				<-time.After(5 * time.Second)
			}
			return results, err
		})
		c.begin("b", 3*time.Second)
		go func() { _, _ = w.Look(t.Context(), "a") }()
		began := time.Now()
		shown := []bool{}
		_, err := w.Until(t.Context(), "do", "b", func(done bool, err error) (bool, error) {
			shown = append(shown, done)
			return time.Since(began) > 8*time.Second, err
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(shown); i++ {
			if shown[i-1] && !shown[i] {
				t.Errorf("it was shown undone after it was done: %v", shown)
			}
		}
		if len(shown) < 3 {
			t.Errorf("it was shown %d times while one look hung", len(shown))
		}
	})
}

// The more things a look was for, the longer the next one may collect. The first look may begin before other callers
// arrive; callers that arrive in the gap after it share the next look.
func TestTheGapDependsOnHowMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		o := options()
		var asked []int
		o.Gap = func(things int) time.Duration {
			asked = append(asked, things)
			return time.Duration(things) * time.Second
		}
		w := New(o, c.look)
		for _, n := range []int{1, 3, 1, 1} {
			var group sync.WaitGroup
			for i := range n {
				key := fmt.Sprint(i)
				c.begin(key, 0)
				group.Go(func() {
					if _, err := w.Look(t.Context(), key); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
		synctest.Wait() // The Waiter's goroutine may look once more before it ends.
		var pauses []time.Duration
		for i := range c.at[1:] {
			pauses = append(pauses, c.at[i+1].Sub(c.at[i]))
		}
		if want := []time.Duration{time.Second, 3 * time.Second, time.Second}; !slices.Equal(pauses, want) {
			t.Errorf("after looks for %v the pauses were %v, want %v; the gap was asked for after %v", c.looks, pauses, want,
				asked)
		}
	})
}
