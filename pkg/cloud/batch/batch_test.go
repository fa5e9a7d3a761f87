package batch

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

	"github.com/stowage-csi/stowage/pkg/failure"
)

// cloud is an API that takes a while, fails as a whole when a request has a bad item, and records its requests.
type cloud struct {
	mu       sync.Mutex
	latency  func() time.Duration
	bad      map[int]bool
	outage   func() error
	calls    [][]int
	began    []time.Time
	inFlight int
	most     int
}

func (c *cloud) call(ctx context.Context, items []int) ([]Result[string], error) {
	c.mu.Lock()
	c.calls, c.began = append(c.calls, slices.Clone(items)), append(c.began, time.Now())
	c.inFlight++
	c.most = max(c.most, c.inFlight)
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.inFlight--; c.mu.Unlock() }()
	select {
	case <-time.After(c.latency()):
	case <-ctx.Done():
		return nil, failure.Errorf(failure.Unavailable, "too late: %w", ctx.Err())
	}
	if c.outage != nil {
		if err := c.outage(); err != nil {
			return nil, err
		}
	}
	results := make([]Result[string], len(items))
	for i, item := range items {
		if c.bad[item] {
			return nil, failure.Errorf(failure.NotFound, "there is no %d", item)
		}
		results[i].Value = fmt.Sprint("value ", item)
	}
	return results, nil
}

func steady(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func TestLoneCallerNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: steady(20 * time.Millisecond)}
		b := New(Options{Max: 10}, c.call)
		for i := range 3 {
			began := time.Now()
			if v, err := b.Do(t.Context(), i); err != nil || v != fmt.Sprint("value ", i) {
				t.Errorf("Do(%d) = %q, %v", i, v, err)
			}
			if took := time.Since(began); took != 20*time.Millisecond {
				t.Errorf("a lone call took %v, want the cloud's own 20ms", took)
			}
		}
	})
}

func TestGathersWhileACallIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: steady(50 * time.Millisecond)}
		b := New(Options{Max: 4}, c.call)
		var group sync.WaitGroup
		ask := func(item int) { group.Go(func() { _, _ = b.Do(t.Context(), item) }) }
		ask(0)
		synctest.Wait()
		for _, item := range []int{1, 2, 3, 1, 4, 5, 2} {
			ask(item)
			synctest.Wait()
		}
		group.Wait()
		if want := [][]int{{0}, {1, 2, 3, 4}, {5}}; !slices.EqualFunc(c.calls, want, slices.Equal) {
			t.Errorf("the calls were for %v, want %v", c.calls, want)
		}
	})
}

func TestBadItemStandsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: steady(time.Millisecond), bad: map[int]bool{37: true, 61: true}}
		items := make([]int, 100)
		for i := range items {
			items[i] = i
		}
		for i, r := range Each(t.Context(), items, Options{}, c.call) {
			if c.bad[i] != failure.Is(r.Err, failure.NotFound) || !c.bad[i] && r.Value != fmt.Sprint("value ", i) {
				t.Errorf("item %d: got %q, %v", i, r.Value, r.Err)
			}
		}
		if len(c.calls) > 30 {
			t.Errorf("two bad ones of a hundred took %d calls, want about 2*2*log2(100)", len(c.calls))
		}
	})
}

// TestFailureOfTheAccountIsNotSplit makes a call fail for a reason that affects every half of it too.
func TestFailureOfTheAccountIsNotSplit(t *testing.T) {
	for name, why := range map[string]error{
		"throttled":   failure.Errorf(failure.Unavailable, "rate exceeded"),
		"not allowed": failure.Errorf(failure.Denied, "the role lacks the right"),
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &cloud{latency: steady(time.Millisecond), outage: func() error { return why }}
			for _, r := range Each(t.Context(), []int{1, 2, 3, 4}, Options{}, c.call) {
				if !errors.Is(r.Err, why) {
					t.Errorf("got %v, want %v", r.Err, why)
				}
			}
			if len(c.calls) != 1 {
				t.Errorf("a call that was %s was made %d times, want once", name, len(c.calls))
			}
		})
	}
}

func TestLeavingLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: steady(50 * time.Millisecond)}
		b := New(Options{}, c.call)
		leaving, cancel := context.WithCancelCause(t.Context())
		var group sync.WaitGroup
		var gone [3]error
		group.Go(func() { _, gone[0] = b.Do(leaving, 1) }) // under way when its caller leaves: continues
		synctest.Wait()
		group.Go(func() { _, gone[1] = b.Do(leaving, 2) }) // another caller wants it too
		group.Go(func() { _, gone[2] = b.Do(leaving, 3) }) // nobody else wants it
		group.Go(func() {
			if v, err := b.Do(t.Context(), 2); err != nil || v != "value 2" {
				t.Errorf("who stayed got %q, %v", v, err)
			}
		})
		synctest.Wait()
		why := errors.New("the caller has had enough")
		cancel(why)
		group.Wait()
		for i, err := range gone {
			if !failure.Is(err, failure.Unavailable) || !errors.Is(err, why) {
				t.Errorf("caller %d left with %v, want Unavailable and why", i, err)
			}
		}
		if want := [][]int{{1}, {2}}; !slices.EqualFunc(c.calls, want, slices.Equal) {
			t.Errorf("the calls were for %v, want %v", c.calls, want)
		}
		if _, err := b.Do(leaving, 4); !failure.Is(err, failure.Unavailable) || len(c.calls) != 2 {
			t.Errorf("a request that has ended got %v after %d calls, want Unavailable and no call", err, len(c.calls))
		}
	})
}

func TestTooFewResultsReachNobody(t *testing.T) {
	short := func(context.Context, []int) ([]Result[string], error) { return make([]Result[string], 1), nil }
	for _, r := range Each(t.Context(), []int{1, 2}, Options{}, short) {
		if !failure.Is(r.Err, failure.Unavailable) {
			t.Errorf("got %q, %v; want Unavailable", r.Value, r.Err)
		}
	}
}

func TestHungCallEndsAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: steady(time.Hour)}
		b := New(Options{Timeout: time.Second}, c.call)
		began := time.Now()
		if _, err := b.Do(t.Context(), 1); !failure.Is(err, failure.Unavailable) || time.Since(began) != time.Second {
			t.Errorf("a hung call ended after %v with %v, want Unavailable after 1s", time.Since(began), err)
		}
	})
}

func TestHungCallHoldsNobodyBackForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := true
		c := &cloud{latency: func() time.Duration {
			if hung {
				hung = false
				return time.Hour
			}
			return 20 * time.Millisecond
		}}
		b := New(Options{Timeout: 10 * time.Second, Slow: time.Second}, c.call)
		var group sync.WaitGroup
		ask := func(item int, after time.Duration, fails bool) {
			group.Go(func() {
				began := time.Now()
				if _, err := b.Do(t.Context(), item); (err != nil) != fails || time.Since(began) != after {
					t.Errorf("item %d: %v after %v, want a failure: %t, after %v", item, err, time.Since(began), fails, after)
				}
			})
			synctest.Wait()
		}
		ask(1, 10*time.Second, true)
		ask(2, time.Second+20*time.Millisecond, false)
		ask(1, time.Second+20*time.Millisecond, false) // the same item again, of a call that does not hang
		group.Wait()
	})
}

// TestManyCallers checks invariants for any callers and any cloud. Each caller gets the answer for its own item, from a
// call that began no earlier than its request. Calls do not overlap and keep to the maximum.
func TestManyCallers(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) { manyCallers(t, seed) })
	}
}

func manyCallers(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	below := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
	c := &cloud{bad: map[int]bool{},
		latency: func() time.Duration { return time.Duration(1+below(50)) * time.Millisecond }}
	for range below(6) {
		c.bad[below(40)] = true
	}
	limit := 1 + below(9)
	b := New(Options{Max: limit}, c.call)
	var group sync.WaitGroup
	for range 120 {
		pause, patience, item := time.Duration(below(400))*time.Millisecond, time.Duration(20+below(2000))*time.Millisecond,
			below(40)
		group.Go(func() {
			time.Sleep(pause) //nolint:forbidigo // The clock is the test's own.
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			asked := time.Now()
			value, err := b.Do(ctx, item)
			switch {
			case ctx.Err() != nil:
				if err != nil && time.Since(asked) != patience {
					t.Errorf("seed %d: a caller left after %v, want %v", seed, time.Since(asked), patience)
				}
			case c.bad[item]:
				if !failure.Is(err, failure.NotFound) {
					t.Errorf("seed %d: the bad item %d got %q, %v", seed, item, value, err)
				}
			case err != nil || value != fmt.Sprint("value ", item):
				t.Errorf("seed %d: item %d got %q, %v", seed, item, value, err)
			case !c.calledSince(item, asked):
				t.Errorf("seed %d: item %d was answered from a call before it was asked for", seed, item)
			}
		})
	}
	group.Wait()
	time.Sleep(time.Second) //nolint:forbidigo // What is under way when all have left goes on; the clock is the test's own.
	synctest.Wait()
	c.check(t, seed, limit)
	if b.running || len(b.places) != 0 {
		t.Errorf("seed %d: at the end it runs: %t, with %d places", seed, b.running, len(b.places))
	}
}

func (c *cloud) calledSince(item int, since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, items := range c.calls {
		if slices.Contains(items, item) && !c.began[i].Before(since) {
			return true
		}
	}
	return false
}

func (c *cloud) check(t *testing.T, seed uint64, limit int) {
	t.Helper()
	if c.most > 1 {
		t.Errorf("seed %d: %d calls overlapped", seed, c.most)
	}
	for _, items := range c.calls {
		if sorted := slices.Sorted(slices.Values(items)); len(items) > limit || len(slices.Compact(sorted)) != len(items) {
			t.Errorf("seed %d: a call was for %v, want at most %d different items", seed, items, limit)
		}
	}
}

// A request that failed because of the items that its failure names is repeated without them.
func TestNamedItemsStandAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{latency: steady(time.Second), bad: map[int]bool{3: true, 17: true, 18: true}}
		items := make([]int, 40)
		for i := range items {
			items[i] = i
		}
		named := func(err error, item string) bool { return strings.HasSuffix(err.Error(), " "+item) }
		for i, result := range Each(t.Context(), items, Options{Named: named}, c.call) {
			if good := result.Err == nil && result.Value == fmt.Sprint("value ", i); good == c.bad[i] {
				t.Errorf("item %d: %+v", i, result)
			}
		}
		if most := 2*len(c.bad) + 1; len(c.calls) != most {
			t.Errorf("there were %d requests, want %d: %v", len(c.calls), most, c.calls)
		}
	})
}
