package wait

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// repeating is a look whose first request fails. The look repeats it, which takes the given time.
func repeating(takes time.Duration) batch.Func[string, bool] {
	return func(ctx context.Context, keys []string) ([]batch.Result[bool], error) {
		flight.Because(ctx, errors.New("rate exceeded"))
		<-time.After(takes)
		return make([]batch.Result[bool], len(keys)), nil
	}
}

// outage is a look that fails.
func outage(context.Context, []string) ([]batch.Result[bool], error) {
	return nil, failure.Errorf(failure.Unavailable, "rate exceeded")
}

// undone is a look that shows another state than the awaited one.
func undone(_ context.Context, keys []string) ([]batch.Result[bool], error) {
	return make([]batch.Result[bool], len(keys)), nil
}

// TestCallerThatLeavesHearsTheLastFailure makes a caller leave before the state that it waits for. It checks the
// caller's own reason, and the one of an operation that waits for it.
func TestCallerThatLeavesHearsTheLastFailure(t *testing.T) {
	until := func(ctx context.Context, w *Waiter[string, bool]) error {
		_, err := w.Until(ctx, "do", "a", isDone)
		return err
	}
	look := func(ctx context.Context, w *Waiter[string, bool]) error {
		_, err := w.Look(ctx, "a")
		return err
	}
	for name, row := range map[string]struct {
		look           batch.Func[string, bool]
		call           func(ctx context.Context, w *Waiter[string, bool]) error
		reason, behind bool // whether the caller's error has it, and the operation that waits for the caller
	}{
		"Until, with looks that fail":               {outage, until, true, true},
		"Until, during a look that is repeated":     {repeating(time.Hour), until, true, true},
		"Until, after a look that was repeated":     {repeating(0), until, false, true},
		"Look, with a request that is repeated":     {repeating(time.Hour), look, true, true},
		"Look, with a request that was repeated":    {repeating(0), look, false, true},
		"Until, with looks that show another state": {undone, until, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				var cause flight.Cause
				err := row.call(cause.Watch(ctx), New(options(), row.look))
				if strings.Contains(fmt.Sprint(err), "rate exceeded") != row.reason {
					t.Errorf("got %v, want the reason in it: %t", err, row.reason)
				}
				if last := cause.Last(); strings.Contains(last, "rate exceeded") != row.behind {
					t.Errorf("the operation behind it has %q, want the reason in it: %t", last, row.behind)
				}
				<-time.After(2 * time.Hour) // The looks have ended.
			})
		})
	}
}
