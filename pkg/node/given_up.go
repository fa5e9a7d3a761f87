package node

import (
	"context"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/tracing"
)

// limits bound what an operation does beyond its context. Each is a constant, except in a test that is more patient.
type limits struct{ grace, searchTime, detachTime, answerTime time.Duration }

// Grace is how long after the end of its context an operation may take to report its outcome. Operations heed their
// context, and known waits are given up at its end.
const Grace = 500 * time.Millisecond

// detachTime is the minimum time that a loop device to be freed may stay open in processes that only inspect it, or be
// written back, before it counts as in use.
const detachTime = time.Second

// detachTime returns a twelfth of the request's time, but at least the limit. That is ten seconds of the two minutes
// that a kubelet gives a call: long enough for an inspection on a busy machine, and short enough to leave time to find
// and name the process that keeps the device.
func (s *Service) detachTime(ctx context.Context) time.Duration {
	until, bounded := ctx.Deadline()
	if !bounded {
		return s.limits.detachTime
	}
	return max(s.limits.detachTime, time.Until(until)/12)
}

// change runs an operation that changes a volume. It returns soon after the end of the context, whatever hangs, so that
// the caller can release the volume's lock. An operation that was given up ends by itself: it begins nothing more and
// takes down what it made. Until it has ended, no other operation changes the volume.
func change[T any](ctx context.Context, s *Service, verb, volume string,
	operation func(context.Context) (T, error)) (T, error) {
	call := deadline.Call{Name: fmt.Sprintf("%s volume %q", verb, volume), On: onVolume(volume), Grace: s.limits.grace}
	return tracing.Run(s.calls.With(ctx), "node "+verb, func(ctx context.Context) (T, error) {
		changed, err := deadline.Do(ctx, call, operation, nil)
		return changed, failed(verb, volume, err)
	})
}

// onVolume returns the key on which operations that change a volume exclude each other.
func onVolume(volume string) string { return "volume " + volume }

// changing reports whether an operation on the volume is under way, or was given up and has not ended, or whether its
// background work goes on.
func (s *Service) changing(volume string) bool {
	return s.calls.UnderWay(onVolume(volume)) || s.works.Running(volume)
}

// act is change for an operation without a result.
func (s *Service) act(ctx context.Context, verb, volume string, operation func(context.Context) error) error {
	_, err := change(ctx, s, verb, volume,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, operation(ctx) })
	return err
}

// look runs an operation that only inspects a volume at a path, in the same way. An inspection that hangs does not
// delay operations that change the volume, which may be what ends it.
func look[T any](ctx context.Context, s *Service, verb, volume, path string,
	operation func(context.Context) (T, error)) (T, error) {
	call := deadline.Call{Name: fmt.Sprintf("%s volume %q at %q", verb, volume, path), Grace: s.limits.grace}
	return tracing.Run(s.calls.With(ctx), "node "+verb, func(ctx context.Context) (T, error) {
		found, err := deadline.Do(ctx, call, operation, nil)
		return found, failed(verb, volume, err)
	})
}
