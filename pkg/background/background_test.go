package background_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// errOwn is a work's own error.
var errOwn = errors.New("its own")

func wantKind(t *testing.T, err error, kind failure.Kind, words ...string) {
	t.Helper()
	if !failure.Is(err, kind) {
		t.Errorf("got %v (Kind %s), want Kind %s", err, failure.KindOf(err), kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }

// call returns a context that ends after a while, as a call's does.
func call(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// slow is work that takes an hour and returns its argument, or ends when it is cancelled.
func slow(value int, err error) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		select {
		case <-time.After(time.Hour):
			return value, err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func never(t *testing.T) func(context.Context) (int, error) {
	return func(context.Context) (int, error) {
		t.Error("the work was begun again")
		return 0, nil
	}
}

// Work that takes an hour is done after finitely many calls of two minutes, and is begun once. One call gets its
// outcome.
func TestWorkOutlivesItsCalls(t *testing.T) {
	for _, own := range []error{nil, errOwn} {
		synctest.Test(t, func(t *testing.T) {
			works := background.New[int](1)
			work := background.Work{Key: "v", Name: "counting", Progress: func() string { return "half of it" }}
			_, err := works.Do(call(t, 2*time.Minute), work, slow(7, own))
			wantKind(t, err, failure.Busy, "counting goes on in the background, for 2m0s so far (half of it)", "call again")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v does not tell why", err)
			}
			value, calls := 0, 1
			for ; failure.Is(err, failure.Busy); calls++ {
				pass(time.Minute)
				value, err = works.Do(call(t, 2*time.Minute), work, never(t))
			}
			if !errors.Is(err, own) || own == nil && value != 7 {
				t.Errorf("the outcome is %d, %v; want 7 or %v", value, err, own)
			}
			if calls != 21 {
				t.Errorf("it took %d calls, want 21", calls)
			}
			if value, err := works.Do(t.Context(), work, func(context.Context) (int, error) { return 8, nil }); value != 8 ||
				err != nil {
				t.Errorf("the next work yields %d, %v", value, err)
			}
		})
	}
}

// The outcome waits for a call, but not forever.
func TestOutcomeIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works, work := background.New[int](9), background.Work{Key: "v", Name: "counting"}
		for late, want := range map[time.Duration]int{2 * time.Hour: 8, 70 * time.Minute: 7} {
			_, err := works.Do(call(t, time.Second), work, slow(7, nil))
			wantKind(t, err, failure.Busy)
			pass(late)
			if works.Running("v") {
				t.Error("it has ended and counts as under way")
			}
			if value, err := works.Do(t.Context(), work, func(context.Context) (int, error) { return 8, nil }); value != want ||
				err != nil {
				t.Errorf("after %s: %d, %v; want %d", late, value, err, want)
			}
		}
	})
}

// Wait finds any work under way, begins none, and takes a failure. A success is kept for the next Do.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := background.New[int](1)
		if err := works.Wait(t.Context(), "v"); err != nil {
			t.Error(err)
		}
		_, err := works.Do(call(t, time.Second), background.Work{Key: "v", Name: "counting"}, slow(0, errOwn))
		wantKind(t, err, failure.Busy)
		wantKind(t, works.Wait(call(t, time.Second), "v"), failure.Busy, "counting")
		if err := works.Wait(t.Context(), "v"); !errors.Is(err, errOwn) {
			t.Errorf("got %v, want the work's own error", err)
		}
		if err := works.Wait(t.Context(), "v"); err != nil {
			t.Errorf("the outcome was heard twice: %v", err)
		}
		work := background.Work{Key: "v", Name: "counting"}
		_, err = works.Do(call(t, time.Second), work, slow(7, nil))
		wantKind(t, err, failure.Busy)
		for range 2 {
			if err := works.Wait(t.Context(), "v"); err != nil {
				t.Error(err)
			}
		}
		if value, err := works.Do(t.Context(), work, never(t)); value != 7 || err != nil {
			t.Errorf("got %d, %v; want what the work came to", value, err)
		}
	})
}

// Under one key there is one work at a time. Another one is refused at once, and can begin when that has ended.
func TestOtherWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works, begun := background.New[int](9), time.Now()
		_, err := works.Do(call(t, time.Second), background.Work{Key: "v", Name: "counting"}, slow(7, nil))
		wantKind(t, err, failure.Busy)
		other := background.Work{Key: "v", Name: "sorting"}
		_, err = works.Do(t.Context(), other, never(t))
		wantKind(t, err, failure.Busy, "sorting is not begun: counting goes on")
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the refusal took until %s", took)
		}
		pass(2 * time.Hour)
		if value, err := works.Do(t.Context(), other, func(context.Context) (int, error) { return 8, nil }); value != 8 ||
			err != nil {
			t.Errorf("the other work yields %d, %v", value, err)
		}
	})
}

func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := background.New[int](2)
		for _, key := range []string{"a", "b"} {
			_, err := works.Do(call(t, time.Second), background.Work{Key: key, Name: key}, slow(0, nil))
			wantKind(t, err, failure.Busy)
		}
		_, err := works.Do(t.Context(), background.Work{Key: "c", Name: "c"}, never(t))
		wantKind(t, err, failure.Busy, "c is not begun", "at most 2")
		pass(2 * time.Hour) // kept outcomes do not count
		if _, err := works.Do(t.Context(), background.Work{Key: "c", Name: "c"}, slow(0, nil)); err != nil {
			t.Error(err)
		}
	})
}

// Stop returns only once no work is under way. If a work ignores its cancellation, the error names it.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works, work := background.New[int](9), background.Work{Key: "v", Name: "counting"}
		if err := works.Stop(t.Context(), "v"); err != nil {
			t.Error(err)
		}
		var under atomic.Bool
		_, err := works.Do(call(t, time.Second), work, func(ctx context.Context) (int, error) {
			under.Store(true)
			<-ctx.Done()
			pass(time.Minute)
			under.Store(false)
			return 0, errOwn
		})
		wantKind(t, err, failure.Busy)
		wantKind(t, works.Stop(call(t, time.Second), "v"), failure.Busy, "it was told to end: counting goes on")
		if err := works.Stop(t.Context(), "v"); err != nil || under.Load() {
			t.Errorf("stopped with %v, still under way: %t", err, under.Load())
		}
		if value, err := works.Do(t.Context(), work, slow(7, nil)); value != 7 || err != nil {
			t.Errorf("after the stop: %d, %v; want the outcome of the new work", value, err)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := background.New[int](9)
		for _, key := range []string{"a", "b"} {
			_, err := works.Do(call(t, time.Second), background.Work{Key: key, Name: key}, slow(0, nil))
			wantKind(t, err, failure.Busy)
		}
		begun := time.Now()
		if err := works.Close(t.Context()); err != nil || time.Since(begun) != 0 {
			t.Errorf("closed with %v after %s", err, time.Since(begun))
		}
		_, err := works.Do(t.Context(), background.Work{Key: "c", Name: "c"}, never(t))
		wantKind(t, err, failure.Unavailable, "the process is ending")
	})
}

func TestCloseOfWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := background.New[int](9)
		_, err := works.Do(call(t, time.Second), background.Work{Key: "a", Name: "hanging"},
			func(context.Context) (int, error) {
				pass(time.Hour)
				return 0, nil
			})
		wantKind(t, err, failure.Busy)
		wantKind(t, works.Close(call(t, time.Second)), failure.Busy, "hanging goes on")
		pass(2 * time.Hour)
	})
}

// Of many concurrent callers, one begins the work and all get its outcome.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := background.New[int](1)
		var begun atomic.Int32
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				value, err := works.Do(t.Context(), background.Work{Key: "v", Name: "counting"},
					func(ctx context.Context) (int, error) {
						begun.Add(1)
						return slow(7, nil)(ctx)
					})
				if value != 7 || err != nil {
					t.Errorf("got %d, %v", value, err)
				}
			})
		}
		group.Wait()
		if begun.Load() != 1 {
			t.Errorf("begun %d times, want once", begun.Load())
		}
	})
}

func TestNotBegunAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := background.New[int](1).Do(ctx, background.Work{Key: "v", Name: "counting"}, never(t))
	wantKind(t, err, failure.Unavailable, "counting is not begun")
}

// A panic reaches the call that gets the outcome, which may be a later one.
func TestPanicIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works, work := background.New[int](1), background.Work{Key: "v", Name: "counting"}
		_, err := works.Do(call(t, time.Second), work, func(context.Context) (int, error) {
			pass(time.Minute)
			panic("boom")
		})
		wantKind(t, err, failure.Busy)
		defer func() {
			if cause, _ := recover().(string); !strings.HasPrefix(cause, "boom") {
				t.Errorf("got panic %q", cause)
			}
			if works.Running("v") {
				t.Error("it counts as under way")
			}
		}()
		_, _ = works.Do(t.Context(), work, never(t))
	})
}

// closer counts how often it is closed.
type closer struct{ closed atomic.Int32 }

func (c *closer) Close() error {
	c.closed.Add(1)
	return nil
}

// The resource of a work is closed when the work ends, or at once by a call that begins none.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := background.New[int](1)
		var begins, joins, refused, late closer
		work := func(name string, holds *closer) background.Work {
			return background.Work{Key: "v", Name: name, Holds: holds}
		}
		_, err := works.Do(call(t, time.Second), work("counting", &begins), slow(7, nil))
		wantKind(t, err, failure.Busy)
		_, err = works.Do(call(t, time.Second), work("counting", &joins), never(t))
		wantKind(t, err, failure.Busy)
		_, err = works.Do(t.Context(), work("sorting", &refused), never(t))
		wantKind(t, err, failure.Busy)
		if b, j, r := begins.closed.Load(), joins.closed.Load(), refused.closed.Load(); b != 0 || j != 1 || r != 1 {
			t.Errorf("closed while the work goes on: %d times by the call that began it, %d and %d by others; want 0, 1 and 1",
				b, j, r)
		}
		_, err = works.Do(t.Context(), work("counting", &late), never(t))
		if b, l := begins.closed.Load(), late.closed.Load(); err != nil || b != 1 || l != 1 {
			t.Errorf("after the end (%v): closed %d and %d times, want once each", err, b, l)
		}
	})
}
