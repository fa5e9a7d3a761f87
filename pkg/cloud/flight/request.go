package flight

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// request is one call of Finish. Its timer ends it.
type request struct {
	caller  context.Context //nolint:containedctx // Whether it may be sent depends on it.
	timeout time.Duration
	timer   *time.Timer
}

// requestKey is the key for the request in the context of call.
type requestKey struct{}

// Finish makes a call that continues within the timeout even if its caller has left. If the call must wait before it
// sends anything, it waits in Turn.
func Finish[T any](ctx context.Context, timeout time.Duration, call func(ctx context.Context) (T, error)) (T, error) {
	r := &request{caller: ctx, timeout: timeout}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), requestKey{}, r))
	defer cancel(nil)
	r.timer = time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	defer r.timer.Stop()
	return call(ctx)
}

// Turn makes a call of Finish wait until it may send its request, which then has the whole timeout. Until then the call
// depends on its caller: a request that is not sent before the caller's time ends is never sent. Others, possibly in
// another process, rely on that. Turn checks the clock too, because the process may have been suspended meanwhile.
// Kinds: Busy, and nothing was sent; those of wait.
func Turn(ctx context.Context, wait func(ctx context.Context) error) error {
	caller, within := ctx, time.Duration(0)
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.timer.Stop()
		defer func() { r.timer.Reset(r.timeout) }()
		caller, within = r.caller, r.timeout
	}
	limited, cancel := bounded(caller, within)
	defer cancel()
	if err := wait(limited); err != nil {
		return err
	}
	return ended(caller)
}

// InTime fails if the caller's time has ended. It is called right before sending, because the request may have waited
// since its turn, for example for credentials or a connection. Kinds: Busy, and it must not be sent.
func InTime(ctx context.Context) error {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		ctx = r.caller
	}
	return ended(ctx)
}

// bounded returns a context that ends when the caller wants its answer, or after within if that is earlier and not 0.
func bounded(caller context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	end, ok := Deadline(caller)
	if latest := time.Now().Add(within); within > 0 && (!ok || latest.Before(end)) {
		end, ok = latest, true
	}
	if !ok {
		return caller, func() {}
	}
	return context.WithDeadline(caller, end)
}

// ended fails if the caller's time has ended. Kinds: Busy.
func ended(caller context.Context) error {
	err := context.Cause(caller)
	if end, ok := Deadline(caller); err == nil && ok && !time.Now().Before(end) {
		err = context.DeadlineExceeded
	}
	if err == nil {
		return nil
	}
	return failure.Errorf(failure.Busy, "not sent, because the request has ended: ask again: %w", err)
}
