package wait

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// cloud has things that are done at a certain time.
type cloud struct {
	mu      sync.Mutex
	latency time.Duration
	doneAt  map[string]time.Time
	outage  error
	looks   [][]string
	at      []time.Time
}

func (c *cloud) look(_ context.Context, keys []string) ([]batch.Result[bool], error) {
	c.mu.Lock()
	c.looks, c.at = append(c.looks, slices.Clone(keys)), append(c.at, time.Now())
	c.mu.Unlock()
	time.Sleep(c.latency) //nolint:forbidigo // The clock is the test's own.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outage != nil {
		return nil, c.outage
	}
	results := make([]batch.Result[bool], len(keys))
	for i, key := range keys {
		at, ok := c.doneAt[key]
		if !ok {
			results[i].Err = failure.Errorf(failure.NotFound, "there is no %q", key)
		}
		results[i].Value = ok && !time.Now().Before(at)
	}
	return results, nil
}

// begin starts something that takes the given time.
func (c *cloud) begin(key string, takes time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doneAt == nil {
		c.doneAt = map[string]time.Time{}
	}
	c.doneAt[key] = time.Now().Add(takes)
}

func (c *cloud) lookedSince(began time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.at, func(at time.Time) bool { return !at.Before(began) })
}

func isDone(done bool, err error) (bool, error) { return done, err }

func options() Options {
	return Options{Least: 100 * time.Millisecond, Most: 10 * time.Second, Typical: time.Second}
}

func TestManyShareOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: 20 * time.Millisecond}
		w := New(options(), c.look)
		var group sync.WaitGroup
		for _, key := range []string{"a", "b", "c", "a", "b", "d", "e", "f"} {
			c.begin(key, 800*time.Millisecond)
			group.Go(func() {
				if done, err := w.Until(t.Context(), "do", key, isDone); !done || err != nil {
					t.Errorf("waiting for %s: got %t, %v", key, done, err)
				}
			})
		}
		group.Wait()
		if len(c.looks) != 1 || len(c.looks[0]) != 6 {
			t.Errorf("the looks were for %v, want one for six things", c.looks)
		}
		synctest.Wait()
		if w.running || len(w.waiting) != 0 {
			t.Errorf("with nobody waiting it runs: %t, for %d", w.running, len(w.waiting))
		}
	})
}

func TestLearnsHowLongTheCloudTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: 20 * time.Millisecond}
		w := New(options(), c.look)
		for _, takes := range []time.Duration{6 * time.Second, 400 * time.Millisecond} {
			var looks int
			var late time.Duration
			for range 40 {
				before := len(c.looks)
				c.begin("a", takes)
				began := time.Now()
				if _, err := w.Until(t.Context(), "do", "a", isDone); err != nil {
					t.Fatal(err)
				}
				looks, late = len(c.looks)-before, time.Since(began)-takes
			}
			if looks > 4 || late > takes/2 {
				t.Errorf("what always takes %v takes %d looks and is noticed %v late, want at most 4 and %v", takes, looks, late,
					takes/2)
			}
		}
	})
}

func TestOverdueIsLookedAtEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		w := New(options(), c.look)
		c.begin("stuck", time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		began := time.Now()
		_, err := w.Until(ctx, "do", "stuck", isDone)
		if !failure.Is(err, failure.Busy) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Minute {
			t.Errorf("got %v after %v, want Busy after 2m", err, time.Since(began))
		}
		if len(c.looks) > 30 {
			t.Errorf("two minutes of waiting took %d looks, want far fewer than 100", len(c.looks))
		}
		synctest.Wait()
		if w.running {
			t.Error("it runs with nobody waiting")
		}
	})
}

func TestFailedLookIsNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		w := New(options(), c.look)
		c.begin("a", time.Second)
		c.outage = failure.Errorf(failure.Unavailable, "rate exceeded")
		time.AfterFunc(20*time.Second, func() { c.mu.Lock(); c.outage = nil; c.mu.Unlock() })
		if done, err := w.Until(t.Context(), "do", "a", isDone); !done || err != nil {
			t.Errorf("after an outage: got %t, %v; want done", done, err)
		}
		if len(c.looks) > 14 {
			t.Errorf("%d looks in 20 s of throttling, want ever fewer", len(c.looks))
		}
		c.outage = failure.Errorf(failure.Unavailable, "rate exceeded")
		w = New(options(), c.look)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := w.Until(ctx, "do", "a", isDone); !failure.Is(err, failure.Busy) || !errors.Is(err, c.outage) {
			t.Errorf("in an outage: got %v, want Busy because of %v", err, c.outage)
		}
	})
}

// TestAnsweredLookIsNoFailure makes all callers leave while a look is under way: its answer still shows that the cloud
// works.
func TestAnsweredLookIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: time.Second}
		w := New(options(), c.look)
		for range 5 {
			c.begin("a", time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			_, _ = w.Until(ctx, "do", "a", isDone)
			cancel()
			time.Sleep(5 * time.Second) //nolint:forbidigo // The clock is the test's own.
		}
		synctest.Wait()
		if w.pace.failures != 0 || len(c.looks) < 5 {
			t.Errorf("after %d looks that were answered, %d are taken for failures", len(c.looks), w.pace.failures)
		}
	})
}

func TestAcceptSeesNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		w := New(options(), c.look)
		if _, err := w.Until(t.Context(), "do", "gone", isDone); !failure.Is(err, failure.NotFound) {
			t.Errorf("got %v, want NotFound", err)
		}
		if _, err := w.Until(t.Context(), "do", "gone",
			func(_ bool, err error) (bool, error) { return err != nil, nil }); err != nil {
			t.Errorf("waiting for it to be gone: %v", err)
		}
	})
}

// TestNothingOlderThanTheCall has callers arrive at any time, also while a look is under way.
func TestNothingOlderThanTheCall(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			c := &cloud{latency: 70 * time.Millisecond}
			w := New(options(), c.look)
			var group sync.WaitGroup
			for range 60 {
				key := string(rune('a' + random.IntN(5)))
				pause, patience := time.Duration(random.IntN(5000))*time.Millisecond,
					time.Duration(random.IntN(4000))*time.Millisecond
				c.begin(key, time.Duration(random.IntN(3000))*time.Millisecond)
				group.Go(func() {
					time.Sleep(pause) //nolint:forbidigo // The clock is the test's own.
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					began := time.Now()
					_, err := w.Until(ctx, "do", key, isDone)
					if err == nil && !c.lookedSince(began) {
						t.Errorf("seed %d: answered from a look before the call", seed)
					}
					if took := time.Since(began); took > patience {
						t.Errorf("seed %d: back after %v, want %v at most", seed, took, patience)
					}
				})
			}
			group.Wait()
			time.Sleep(time.Second) //nolint:forbidigo // The look that is under way goes on; the clock is the test's own.
			synctest.Wait()
			for i := range c.at[1:] {
				if gap := c.at[i+1].Sub(c.at[i]); gap < 100*time.Millisecond {
					t.Errorf("seed %d: two looks within %v, want 100ms", seed, gap)
				}
			}
			if w.running {
				t.Errorf("seed %d: it runs with nobody waiting", seed)
			}
		})
	}
}

// If a cloud completes requests at once, the Waiter soon looks at once.
func TestWhatIsQuickIsLookedAtAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: 20 * time.Millisecond}
		w := New(options(), c.look)
		var took time.Duration
		for range 8 {
			c.begin("a", 0)
			began := time.Now()
			if _, err := w.Until(t.Context(), "do", "a", isDone); err != nil {
				t.Fatal(err)
			}
			took = time.Since(began)
		}
		if took > 120*time.Millisecond || len(c.looks) != 8 {
			t.Errorf("after 8 times and %d looks it takes %v, want one look each and 120ms", len(c.looks), took)
		}
	})
}
