package driver

import (
	"context"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/pkg/tracing"
)

// traceCalls traces each call, or continues the trace of its caller (W3C Trace Context). Without a provider nothing is
// traced.
func traceCalls(provider trace.TracerProvider) []grpc.ServerOption {
	if provider == nil {
		return nil
	}
	handler := otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(provider),
		otelgrpc.WithPropagators(propagation.TraceContext{}))
	return []grpc.ServerOption{grpc.StatsHandler(handler)}
}

// decoded runs the step that turns a request into typed values.
func decoded[R, T any](ctx context.Context, request R, decode func(R) (T, error)) (T, error) {
	return tracing.Run(ctx, "decode", func(context.Context) (T, error) { return decode(request) })
}
