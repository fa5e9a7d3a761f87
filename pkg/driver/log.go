package driver

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Levels below slog's Debug follow klog: -v=4 shows requests, -v=5 their messages.
const (
	levelRequests = slog.Level(-4)
	levelMessages = slog.Level(-5)
)

type contextKey struct{}

// call has a request's ID and logger, which the request's context carries.
type call struct {
	id  string
	log *slog.Logger
}

// identify gives each request an ID, and a logger with that ID.
func identify(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		id := uuid.NewString()
		this := call{id: id, log: log.With("request", id, "method", info.FullMethod)}
		if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
			this.log = this.log.With("trace", span.TraceID().String())
		}
		return handler(context.WithValue(ctx, contextKey{}, this), request)
	}
}

func logger(ctx context.Context) *slog.Logger {
	if this, ok := ctx.Value(contextKey{}).(call); ok {
		return this.log
	}
	return slog.New(slog.DiscardHandler)
}

func requestID(ctx context.Context) string {
	this, _ := ctx.Value(contextKey{}).(call)
	return this.id
}

// record logs a request and its outcome. It redacts messages, and renders them only if they are shown.
func record(limits *logLimits) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		log, start := logger(ctx), time.Now()
		log.Log(ctx, levelMessages, "request", "message", redacted{request})
		response, err := handler(ctx, request)
		took := slog.Duration("took", time.Since(start))
		code, reason := status.Code(err).String(), status.Convert(err).Message()
		switch status.Code(err) {
		case codes.OK:
			log.Log(ctx, levelRequests, "answered", took)
			log.Log(ctx, levelMessages, "response", "message", redacted{response})
		case codes.Internal, codes.Unknown:
			limits.failure(log, flood{info.FullMethod, code}, "failed", "code", code, "error", reason, took)
		default:
			limits.refusal(log, "code", code, "error", reason, took)
		}
		return response, err
	}
}
