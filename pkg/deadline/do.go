package deadline

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Call describes a call.
type Call struct {
	// Name says what is done to which object: "opening image \"/pool/a\"". Errors contain it.
	Name string
	// On is the thing that has at most one call at a time; empty for the Name. A second call waits for the first, and is
	// refused once the first was given up.
	On string
	// Grace is how long Do waits after the end of the context: for calls that end with the context themselves and report
	// more than Do can.
	Grace time.Duration
}

func (c Call) on() string {
	if c.On != "" {
		return c.On
	}
	return c.Name
}

// outcome is how a call ended.
type outcome[T any] struct {
	value T
	err   error
	panic string // with its stack
}

// Do makes the call and returns when the call ends or the context does, whichever is first. If a call that was given up
// succeeds later, it is undone; undo may be nil if there is nothing to undo. Another call on the same thing may begin
// only after that.
//
// The call gets the context. Once it may have been given up, it must not touch objects that its caller continues to
// use. A panic in it is passed on to the caller, and ends the program if the caller has given up.
//
// Kinds: Unavailable when the context ended, or an earlier call on the same thing has not come back; else the call's
// own.
func Do[T any](ctx context.Context, call Call, work func(context.Context) (T, error), undo func(T)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, failure.Errorf(failure.Unavailable, "%s: not begun: %w", call.Name, err)
	}
	calls := from(ctx)
	r, err := calls.begin(ctx, call)
	if err != nil {
		return none, err
	}
	done, nobody := make(chan outcome[T]), make(chan struct{})
	go func() {
		growStack()
		result := outcome[T]{panic: "it has ended its goroutine (runtime.Goexit)"}
		defer func() {
			select {
			case done <- result:
			case <-nobody:
				defer calls.end(call.on(), r)
				result.drop(undo)
			}
		}()
		result = guarded(ctx, work)
	}()
	if o, ok := await(ctx, call.Grace, done); ok {
		calls.end(call.on(), r)
		return o.unpack()
	}
	calls.giveUp(r)
	close(nobody)
	return none, failure.Errorf(failure.Unavailable, "%s: given up, it has not ended yet: %w", call.Name, ctx.Err())
}

// Run is Do for a call without a result.
func Run(ctx context.Context, call Call, work func(context.Context) error) error {
	_, err := Do(ctx, call, func(ctx context.Context) (struct{}, error) { return struct{}{}, work(ctx) }, nil)
	return err
}

// await waits for the outcome until the context ends, and for the grace after that.
func await[T any](ctx context.Context, grace time.Duration, done <-chan outcome[T]) (o outcome[T], ok bool) {
	select {
	case o = <-done:
		return o, true
	case <-ctx.Done():
	}
	if grace <= 0 {
		return o, false
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case o = <-done:
		return o, true
	case <-patience.C:
		return o, false
	}
}

// guarded makes the call and catches its panic.
func guarded[T any](ctx context.Context, work func(context.Context) (T, error)) (o outcome[T]) {
	defer func() {
		if cause := recover(); cause != nil {
			o.panic = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	o.value, o.err = work(ctx)
	return o
}

// unpack returns the outcome to its caller.
func (o outcome[T]) unpack() (T, error) {
	if o.panic != "" {
		panic(o.panic)
	}
	return o.value, o.err
}

// drop handles an outcome whose caller has given up.
func (o outcome[T]) drop(undo func(T)) {
	if o.panic != "" {
		panic(o.panic)
	}
	if o.err == nil && undo != nil {
		undo(o.value)
	}
}
