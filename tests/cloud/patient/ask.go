package patient

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Manner is how a backend is asked.
type Manner struct {
	Limit    time.Duration // the deadline of each call
	Patience time.Duration // for how long a call is repeated
	Lag      time.Duration // how old what the cloud shows is: a call waits until it shows what was done before
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

// do is must for a call that returns nothing.
func do(ctx context.Context, m Manner, call func(ctx context.Context) error) error {
	_, err := must(ctx, m, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func once[T any](ctx context.Context, limit time.Duration, call func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx)
}

// open reports whether the outcome is not known.
func open(err error) bool {
	return backends.Is(err, backends.Busy) || backends.Is(err, backends.Unavailable)
}

// pause waits; for nothing it makes no timer, since Go's race detector does not bear two of simulated time that are due
// when they are made (runtime, maybeRunChan).
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
