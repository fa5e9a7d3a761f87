package driver

import (
	"context"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// translate turns whatever error comes up into a gRPC status.
func translate() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		return response, statusOf(err)
	}
}

// rescue turns a panic into an error: one broken request must not stop the mounts of all others.
func rescue() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				logger(ctx).Error("a request panicked", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
				err = backends.Errorf(backends.Unknown, "the driver failed unexpectedly; its log has the details under this request's ID %s", requestID(ctx))
			}
		}()
		return handler(ctx, request)
	}
}

// bound cancels a request when the server's life ends before it.
func bound(life context.Context) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		return handler(ctx, request)
	}
}
