package tracing

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/stowage-csi/stowage/pkg/printable"
)

// Scope is the name under which the steps are recorded.
const Scope = "github.com/stowage-csi/stowage"

// Step begins a step of the context's request. The returned function ends the step, with the error of the step. Errors
// never contain secrets. They are shown as short as events are, and without control characters: a user or a tool may
// have said parts of them.
func Step(ctx context.Context, name string) (context.Context, func(error)) {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := request.TracerProvider().Tracer(Scope).Start(ctx, name)
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, printable.Event(err.Error()))
		}
		span.End()
	}
}

// Run runs a function as a step.
func Run[T any](ctx context.Context, name string, run func(context.Context) (T, error)) (T, error) {
	ctx, end := Step(ctx, name)
	result, err := run(ctx)
	end(err)
	return result, err
}
