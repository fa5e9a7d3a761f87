package driver

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

// register serves a method outside CSI whose messages are maps. It describes the method to gRPC as generated code
// would.
func register(server *grpc.Server, service, method string,
	serve func(context.Context, *structpb.Struct) (*structpb.Struct, error)) {
	answer := func(ctx context.Context, request any) (any, error) {
		return serve(ctx, request.(*structpb.Struct)) //nolint:errcheck // Its only callers decode into one.
	}
	handle := func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (
		any, error) {
		request := &structpb.Struct{}
		if err := decode(request); err != nil {
			return nil, err
		}
		if intercept == nil {
			return answer(ctx, request)
		}
		return intercept(ctx, request, &grpc.UnaryServerInfo{FullMethod: "/" + service + "/" + method}, answer)
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: method, Handler: handle}},
	}, nil)
}
