package driver

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/node"
)

// arrive records when a request arrived.
func arrive() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(backends.WithArrival(ctx, time.Now()), request)
	}
}

// translate turns any error into a gRPC status.
func translate(table answers) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		return response, table.statusOf(rpcOf(info.FullMethod), err)
	}
}

// rescue turns a panic into an error: one broken request must not stop the mounts of all others. The error's Kind is
// Unknown, because nobody knows what the request left behind. The orchestrator retries. It may ask for another size or
// class instead if only these cannot be had.
func rescue(limits *logLimits) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (
		response any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				limits.failure(logger(ctx), flood{info.FullMethod, "panic"}, "a request panicked",
					"cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
				err = backends.Errorf(backends.Unknown,
					"the driver failed unexpectedly; its log has the details under this request's ID %s", requestID(ctx))
			}
		}()
		return handler(ctx, request)
	}
}

// bound cancels a request when the server's life ends, and ends it a little before its deadline. An answer sent after
// the caller hung up is lost, and the operator sees only "context deadline exceeded".
func bound(life context.Context) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, cancel := early(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		return handler(ctx, request)
	}
}

// giveUp answers a request whose handler continues after its end: a backend that ignores its context delays neither its
// caller nor the end of the process. The handler keeps the request's locks until it returns, so that no other operation
// runs beside it.
func giveUp() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		call := deadline.Call{Name: info.FullMethod, Grace: giveUpGrace}
		return deadline.Do(ctx, call, func(ctx context.Context) (any, error) { return handler(ctx, request) }, nil)
	}
}

// giveUpGrace is how long after the end of its context a handler may still answer: its own answer tells more about the
// cause. The node has a grace of its own, after which it says what it still waits for.
const giveUpGrace = node.Grace + 200*time.Millisecond

// mostEarly is the maximum time that early reserves for the answer.
const mostEarly = time.Second

// early reserves a fifth of the request's time for the answer, at most mostEarly. A call that may hang gets less than
// that to report its outcome after the end of its context (deadline.Call.Grace).
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	until, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, until.Add(-min(time.Until(until)/5, mostEarly)))
}
