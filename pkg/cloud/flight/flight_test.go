package flight

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// takes is work of the given duration that stops early if its context ends.
func takes(d time.Duration) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "", failure.Errorf(failure.Busy, "everybody left: %w", ctx.Err())
		}
	}
}

func TestOneOperationAThing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string]
		go func() { _, _ = g.Do(t.Context(), Op{Key: "v", What: "attaching"}, takes(time.Second)) }()
		synctest.Wait()
		for _, op := range []Op{{Key: "v", What: "detaching", Join: true}, {Key: "v", What: "attaching"},
			{Key: "v", What: "attaching", Join: true}} {
			if _, err := g.Do(t.Context(), op, takes(0)); !failure.Is(err, failure.Busy) {
				t.Errorf("%+v beside another: got %v, want Busy", op, err)
			}
		}
		if what, busy := g.Under("v"); what != "attaching" || !busy {
			t.Errorf("under way is %q, %t", what, busy)
		}
		if v, err := g.Do(t.Context(), Op{Key: "w"}, takes(0)); v != "done" || err != nil {
			t.Errorf("on another thing: got %q, %v", v, err)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // The clock is the test's own.
		if _, busy := g.Under("v"); busy {
			t.Error("it is still under way")
		}
	})
}

func TestWorkKnowsItsCallersDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	want, _ := ctx.Deadline()
	var outer, inner Group[time.Time]
	got, err := outer.Do(ctx, Op{Key: "v"}, func(ctx context.Context) (time.Time, error) {
		return inner.Do(ctx, Op{Key: "v"}, func(ctx context.Context) (time.Time, error) {
			if _, ok := ctx.Deadline(); ok {
				t.Error("work ends at the deadline of one of its callers")
			}
			at, _ := Deadline(ctx)
			return at, nil
		})
	})
	if err != nil || !got.Equal(want) {
		t.Errorf("the deadline is %v, %v; want %v", got, err, want)
	}
	if at, ok := Deadline(t.Context()); ok {
		t.Errorf("without one it is %v", at)
	}
}

func TestJoinedCallersShareTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string]
		var runs atomic.Int32
		work := func(ctx context.Context) (string, error) { runs.Add(1); return takes(time.Second)(ctx) }
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				ctx := t.Context()
				if i == 0 {
					ctx = impatient
				}
				v, err := g.Do(ctx, Op{Key: "v", What: "attaching", Join: true}, work)
				if left := failure.Is(err, failure.Busy) && errors.Is(err, context.DeadlineExceeded); left != (i == 0) || !left &&
					v != "done" {
					t.Errorf("caller %d got %q, %v", i, v, err)
				}
			})
		}
		group.Wait()
		if runs.Load() != 1 {
			t.Errorf("the work ran %d times, want once", runs.Load())
		}
	})
}

func TestReservedUntilTheWorkReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string]
		sent := func(ctx context.Context) (string, error) {
			_, err := Finish(ctx, time.Minute, takes(3*time.Second))
			if ctx.Err() == nil {
				t.Error("the work was not told that everybody left")
			}
			return "", err
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		op := Op{Key: "v", What: "attaching", Join: true}
		if _, err := g.Do(ctx, op, sent); !failure.Is(err, failure.Busy) || time.Since(began) != time.Second {
			t.Errorf("got %v after %v, want Busy after 1s", err, time.Since(began))
		}
		if _, err := g.Do(t.Context(), op, takes(0)); !failure.Is(err, failure.Busy) {
			t.Errorf("while what was sent is not answered: got %v, want Busy", err)
		}
		time.Sleep(2*time.Second + time.Millisecond) //nolint:forbidigo // The clock is the test's own.
		if v, err := g.Do(t.Context(), op, takes(0)); v != "done" || err != nil {
			t.Errorf("after the answer: got %q, %v", v, err)
		}
		if _, err := g.Do(ctx, op, takes(0)); !failure.Is(err, failure.Unavailable) {
			t.Errorf("a request that has ended: got %v, want Unavailable", err)
		}
	})
}

// A call that waits for its turn depends on its caller until then, and has its whole timeout from then on.
func TestTurnIsTheCallers(t *testing.T) {
	const patience, timeout = time.Minute, 10 * time.Second
	for name, row := range map[string]struct {
		turn   time.Duration // when the turn comes
		asleep bool          // the process is suspended, and gets no notice of the end of its time
		sent   bool
	}{
		"in time":                     {turn: timeout - time.Second, sent: true},
		"after what a request has":    {turn: timeout + time.Second},
		"after the caller has left":   {turn: 2 * patience, asleep: true},
		"when the caller is to leave": {turn: patience, asleep: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				var g Group[string]
				turns, answers := make(chan error, 1), make(chan error, 1)
				_, _ = g.Do(ctx, Op{Key: "v"}, func(ctx context.Context) (string, error) {
					return Finish(ctx, timeout, func(ctx context.Context) (string, error) {
						turns <- Turn(ctx, func(ctx context.Context) error {
							if row.asleep {
								ctx = context.WithoutCancel(ctx)
							}
							_, err := takes(row.turn)(ctx)
							return err
						})
						_, err := takes(timeout - time.Second)(ctx)
						answers <- err
						return "", err
					})
				})
				turned, answered := <-turns, <-answers
				if row.sent && turned != nil || !row.sent && !failure.Is(turned, failure.Busy) || answered != nil {
					t.Errorf("its turn ended with %v, want sent: %t; the request with %v", turned, row.sent, answered)
				}
			})
		})
	}
}
