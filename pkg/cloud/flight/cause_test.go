package flight

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// failing is work that never succeeds. A request of it fails after 100 ms.
func failing(why string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		Because(ctx, errors.New("an earlier reason"))
		<-time.After(100 * time.Millisecond)
		Because(ctx, errors.New(why))
		Because(ctx, nil)
		return takes(time.Hour)(ctx)
	}
}

// TestCallerThatLeavesHearsTheLastFailure makes all callers of an operation leave before it has succeeded.
func TestCallerThatLeavesHearsTheLastFailure(t *testing.T) {
	const why = "rate exceeded"
	var inner Group[string]
	for name, row := range map[string]struct {
		work func(context.Context) (string, error)
		want string // the end of the message
	}{
		"without a failure": {takes(time.Hour), "deadline exceeded"},
		"its own":           {failing(why), "; the last failure, 900ms before: " + why},
		"of an operation that it waits for": {func(ctx context.Context) (string, error) {
			return inner.Do(ctx, Op{Key: "w", What: "asking"}, failing(why))
		}, "; the last failure, 900ms before: " + why},
		"of a request": {func(ctx context.Context) (string, error) {
			return Finish(ctx, time.Hour, failing(why))
		}, "; the last failure, 900ms before: " + why},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var g Group[string]
				_, err := g.Do(ctx, Op{Key: "v", What: "attaching"}, row.work)
				if !failure.Is(err, failure.Busy) || !errors.Is(err, context.DeadlineExceeded) ||
					!strings.HasSuffix(err.Error(), row.want) {
					t.Errorf("got %v, want Busy that ends with %q", err, row.want)
				}
				<-time.After(2 * time.Hour) // The work has ended.
			})
		})
	}
}

func TestClearedCauseIsNone(t *testing.T) {
	Because(t.Context(), errors.New("nobody asks"))
	var c Cause
	Because(c.Watch(t.Context()), errors.New("rate exceeded"))
	if last := c.Last(); !strings.HasSuffix(last, "rate exceeded") {
		t.Errorf("the last failure is %q, want rate exceeded", last)
	}
	c.Clear()
	if last := c.Last(); last != "" {
		t.Errorf("the last failure is %q, want none", last)
	}
}
