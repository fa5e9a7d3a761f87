package backends

import (
	"context"
	"time"
)

// arrivalKey is the key of a context's arrival.
type arrivalKey struct{}

// WithArrival records in the context of a request when the driver received it.
func WithArrival(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, at)
}

// Arrival returns when the driver received the request of a context, by this process's monotonic clock. If none was
// recorded, it returns the current time.
func Arrival(ctx context.Context) time.Time {
	if at, ok := ctx.Value(arrivalKey{}).(time.Time); ok {
		return at
	}
	return time.Now()
}
