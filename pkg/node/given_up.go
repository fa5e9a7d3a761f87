package node

import (
	"context"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/tracing"
)

// limits bound what an operation does beyond its context, each by a constant unless a test is more
// patient.
type limits struct{ grace, searchTime, detachTime, answerTime time.Duration }

// Grace is how long an operation may take, from the end of its context on, to say what became of it. The
// operations heed their context, and what they are known to wait for is given up at its end.
const Grace = 500 * time.Millisecond

// detachTime is how long, at least, a loop device that is to be freed may be open to those who only take a look at it,
// or be written back, before it is in use.
const detachTime = time.Second

// detachTime is a twelfth of the request's time: ten seconds of the two minutes that a kubelet gives a call, which is
// long for a look on a busy machine, and leaves time to find and name who keeps the device.
func (s *Service) detachTime(ctx context.Context) time.Duration {
	until, bounded := ctx.Deadline()
	if !bounded {
		return s.limits.detachTime
	}
	return max(s.limits.detachTime, time.Until(until)/12)
}

// change runs an operation that changes a volume, and returns soon after the end of the context at the latest,
// whatever hangs: the volume's lock, which the caller holds, is free then. An operation that was given up ends by
// itself: it begins nothing more, takes down what it made, and until then the volume is not changed by another.
func change[T any](ctx context.Context, s *Service, verb, volume string,
	operation func(context.Context) (T, error)) (T, error) {
	call := deadline.Call{Name: fmt.Sprintf("%s volume %q", verb, volume), On: "volume " + volume, Grace: s.limits.grace}
	return tracing.Run(s.calls.With(ctx), "node "+verb, func(ctx context.Context) (T, error) {
		changed, err := deadline.Do(ctx, call, operation, nil)
		return changed, failed(verb, volume, err)
	})
}

// act is change for an operation that yields nothing.
func (s *Service) act(ctx context.Context, verb, volume string, operation func(context.Context) error) error {
	_, err := change(ctx, s, verb, volume,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, operation(ctx) })
	return err
}

// look runs an operation that only looks at a volume at a path, in the same way. One that hangs does not hold up those
// that change the volume: they may be what ends it.
func look[T any](ctx context.Context, s *Service, verb, volume, path string,
	operation func(context.Context) (T, error)) (T, error) {
	call := deadline.Call{Name: fmt.Sprintf("%s volume %q at %q", verb, volume, path), Grace: s.limits.grace}
	return tracing.Run(s.calls.With(ctx), "node "+verb, func(ctx context.Context) (T, error) {
		found, err := deadline.Do(ctx, call, operation, nil)
		return found, failed(verb, volume, err)
	})
}
