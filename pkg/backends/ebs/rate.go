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

// usualRate is what an account has for each action that changes something ("Request throttling for the Amazon EC2 API":
// 50 at once, 5 a second), less a little for those who use it besides.
func usualRate() pace.Limit { return pace.Limit{Burst: 45, PerSecond: 4.8} }

// rateOf is how often an action may be asked for.
func (c Config) rateOf(action string) pace.Limit {
	if limit, ok := c.Rates[action]; ok {
		return limit
	}
	return usualRate()
}

// gap is how long to leave between two looks of a kind, at the longest. The nearer the account is to its limits, the
// less is gained by looking often, because what is seen earlier has to wait for its next change: next to nothing for a
// few volumes at once, and seconds where hundreds are under way. And the more volumes a look was for, the sooner as
// many come again, to whom a moment is worth a request that they share: one volume alone is not kept waiting for
// others, and nobody for longer than crowd.
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

// paced makes each attempt of a request wait for its turn, in its caller's time, and sends none after that. The waiting
// is behind the SDK's own retries, and the last look at the clock behind all that needs credentials.
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

// tooOften are the codes with which EC2 refuses a request for its rate.
func tooOften() []string {
	return []string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "EC2ThrottledException"}
}
