package patient

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Manner is the way to call a backend.
type Manner struct {
	Limit    time.Duration // the deadline of each call
	Patience time.Duration // the time for which a call is repeated
	Lag      time.Duration // the age of the cloud's answers: a call waits until they show earlier changes
}

// must repeats a call until its outcome is known.
func must[T any](ctx context.Context, m Manner,
	call func(ctx context.Context) (T, error)) (value T, err error) {
	for began, gap := time.Now(), time.Second; ; gap = min(2*gap, time.Minute) {
		pause(ctx, m.Lag)
		if value, err = once(ctx, m.Limit, call); !open(err) || ctx.Err() != nil || time.Since(began) > m.Patience {
			return value, err
		}
		pause(ctx, gap)
	}
}

// do is must for a call that returns only an error.
func do(ctx context.Context, m Manner, call func(ctx context.Context) error) error {
	_, err := must(ctx, m, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func once[T any](ctx context.Context, limit time.Duration, call func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx)
}

// open reports whether the outcome of a call is unknown.
func open(err error) bool {
	return backends.Is(err, backends.Busy) || backends.Is(err, backends.Unavailable)
}

// pause waits for d. It creates no timer unless d is positive, because Go's race detector fails if two timers of
// simulated time are due when they are created (runtime, maybeRunChan).
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
