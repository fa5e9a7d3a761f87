package ebs

import (
	"context"
	"slices"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
)

// usualRate is an account's limit for each action that changes something ("Request throttling for the Amazon EC2 API":
// 50 at once, 5 a second), less a little for other users of the account.
func usualRate() pace.Limit { return pace.Limit{Burst: 45, PerSecond: 4.8} }

// rateOf returns the limit of an action.
func (c Config) rateOf(action string) pace.Limit {
	if limit, ok := c.Rates[action]; ok {
		return limit
	}
	return usualRate()
}

// gap returns how long to pause between two looks of a kind, at most longest. The nearer the account is to its limits,
// the less is gained by frequent looks, because a volume that is seen earlier must then wait for its next change. The
// pause is close to zero for a few volumes at once, and seconds for hundreds. After a look at many volumes, as many
// callers soon arrive again, and a short pause lets them share a request. One volume alone is not delayed for others,
// and no caller is delayed for them by more than crowd.
func (b *backend) gap(longest, crowd time.Duration) func(things int) time.Duration {
	const (
		exhausted = 8 * time.Second
		each      = 12 * time.Millisecond
	)
	return func(things int) time.Duration {
		used := b.pace.Used()
		gathering := min(time.Duration(things-1)*each, crowd)
		return min(max(time.Duration(used*used*float64(exhausted)), gathering), longest)
	}
}

// paced makes each attempt of a request wait for its turn within its caller's time, and sends none after that. The wait
// is inside the SDK's own retries. The last check of the clock comes after all steps that need credentials.
func (b *backend) paced(stack *middleware.Stack) error {
	if err := stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("InTime", inTime), "Signing",
		middleware.After); err != nil {
		return err
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Pace", b.turn), "Retry", middleware.After)
}

func (b *backend) turn(ctx context.Context, in middleware.FinalizeInput,
	next middleware.FinalizeHandler) (out middleware.FinalizeOutput, data middleware.Metadata, err error) {
	action := awsmiddleware.GetOperationName(ctx)
	err = flight.Turn(ctx, func(ctx context.Context) error { return b.pace.Wait(ctx, action) })
	if err != nil {
		return out, data, err
	}
	out, data, err = next.HandleFinalize(ctx, in)
	switch {
	case err == nil:
		b.pace.Accepted(action)
	case slices.Contains(tooOften(), codeOf(err)):
		b.pace.Refused(action)
	}
	return out, data, err
}

// tooOften returns the codes by which EC2 refuses a request for its rate.
func tooOften() []string {
	return []string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "EC2ThrottledException"}
}
