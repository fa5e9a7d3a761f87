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

// arrive notes when a request came.
func arrive() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(backends.WithArrival(ctx, time.Now()), request)
	}
}

// translate turns whatever error comes up into a gRPC status.
func translate(table answers) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		return response, table.statusOf(rpcOf(info.FullMethod), err)
	}
}

// rescue turns a panic into an error: one broken request must not stop the mounts of all others. What it left is not
// known, and that is its Kind: the orchestrator asks again, but may ask for another size or class where it is these
// that cannot be had.
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

// bound cancels a request when the server's life ends before it, and ends it a little before its deadline: an answer
// that comes when the caller has gone is heard by nobody, and "context deadline exceeded" is all that an operator
// reads.
func bound(life context.Context) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, cancel := early(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		return handler(ctx, request)
	}
}

// giveUp answers a request whose handler goes on after its end: a backend that ignores its context delays neither its
// caller nor the end of the process. The handler keeps the locks of the request until it returns, so that nothing runs
// beside it.
func giveUp() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		call := deadline.Call{Name: info.FullMethod, Grace: giveUpGrace}
		return deadline.Do(ctx, call, func(ctx context.Context) (any, error) { return handler(ctx, request) }, nil)
	}
}

// giveUpGrace is how long a handler may take, after the end of its context, to answer by itself: it knows more of the
// cause. The node has a grace of its own, at whose end it says what it still waits for.
const giveUpGrace = node.Grace + 200*time.Millisecond

// mostEarly is how long before the deadline of a request its answer is sent, at most.
const mostEarly = time.Second

// early leaves a fifth of the request's time for the answer, or mostEarly if that is less: more than what a call that
// may hang has, from the end of its context on, to say what became of it (deadline.Call.Grace).
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	until, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, until.Add(-min(time.Until(until)/5, mostEarly)))
}
