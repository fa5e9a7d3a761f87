package ebs

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/smithy-go/middleware"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

// causes makes a request keep the failures of its attempts. The SDK drops them if the time ends during the next attempt
// or in the pause before it.
func causes(stack *middleware.Stack) error {
	if err := stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Causes", withCause), "Retry",
		middleware.Before); err != nil {
		return err
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Failures", attempted), "Retry", middleware.After)
}

// withCause adds the last failure of an attempt to the error of a request whose time has ended.
func withCause(ctx context.Context, in middleware.FinalizeInput,
	next middleware.FinalizeHandler) (out middleware.FinalizeOutput, data middleware.Metadata, err error) {
	var cause flight.Cause
	if out, data, err = next.HandleFinalize(cause.Watch(ctx), in); outOfTime(err) {
		err = fmt.Errorf("%w%s", err, cause.Last())
	}
	return out, data, err
}

// attempted records the failure of an attempt, also for the operations that wait for the request.
func attempted(ctx context.Context, in middleware.FinalizeInput,
	next middleware.FinalizeHandler) (out middleware.FinalizeOutput, data middleware.Metadata, err error) {
	if out, data, err = next.HandleFinalize(ctx, in); !outOfTime(err) {
		flight.Because(ctx, ofEC2(err))
	}
	return out, data, err
}

// outOfTime reports whether an error is only the end of the caller's time.
func outOfTime(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
