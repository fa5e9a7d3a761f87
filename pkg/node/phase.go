package node

import (
	"context"
	"errors"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tracing"
)

// phase is one step of an operation. Its name appears in errors.
type phase[T any] struct {
	name string
	run  func(operation T, ctx context.Context) error
}

// runPhases runs the phases in order until one fails or the context ends.
func runPhases[T any](ctx context.Context, operation T, phases []phase[T]) error {
	for _, p := range phases {
		err := ctx.Err()
		if err == nil {
			err = p.step(ctx, operation)
		}
		if err != nil {
			return backends.Errorf(kindOf(err), "%s: %w", p.name, err)
		}
	}
	return nil
}

// step runs the phase as a step of the request's trace.
func (p phase[T]) step(ctx context.Context, operation T) error {
	ctx, end := tracing.Step(ctx, p.name)
	err := p.run(operation, ctx)
	end(err)
	return err
}

// failed adds the operation and the volume to an error.
func failed(operation, volume string, err error) error {
	if err == nil {
		return nil
	}
	return &backends.Error{Kind: kindOf(err), Op: operation, Volume: volume, Err: err}
}

// kindOf is backends.KindOf, but Unavailable for an operation that ran out of time: it may still run or be done by now.
func kindOf(err error) backends.Kind {
	kind := backends.KindOf(err)
	if kind == backends.Unknown && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return backends.Unavailable
	}
	return kind
}
