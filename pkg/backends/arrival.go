package backends

import (
	"context"
	"time"
)

// arrivalKey is the key of a context's arrival.
type arrivalKey struct{}

// WithArrival notes in the context of a request when the driver heard of it.
func WithArrival(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, at)
}

// Arrival is when the driver heard of the request of a context, by this process's monotonic clock: now where nobody has
// noted it.
func Arrival(ctx context.Context) time.Time {
	if at, ok := ctx.Value(arrivalKey{}).(time.Time); ok {
		return at
	}
	return time.Now()
}
