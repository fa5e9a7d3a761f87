package driver

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/machines"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// machineServer serves stowage.v1.Machines, which is not of CSI: what is true of the machine of a node.
type machineServer struct{ volumes *volume.Service }

func (s machineServer) get(ctx context.Context, request any) (any, error) {
	query := machines.DecodeQuery(request.(*structpb.Struct)) //nolint:errcheck // Its only caller decodes into one.
	if err := id("node", query.Node); err != nil {
		return nil, err
	}
	found, err := s.volumes.Machine(ctx, backends.MachineQuery(query))
	if err != nil {
		return nil, err
	}
	return machines.Machine{State: machines.State(found.State), Began: found.Began, Says: found.Says}.Encode(), nil
}

// register describes the service to gRPC, as generated code would.
func (s machineServer) register(server *grpc.Server) {
	handle := func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (
		any, error) {
		request := &structpb.Struct{}
		if err := decode(request); err != nil {
			return nil, err
		}
		if intercept == nil {
			return s.get(ctx, request)
		}
		return intercept(ctx, request, &grpc.UnaryServerInfo{Server: s,
			FullMethod: "/" + machines.Service + "/" + machines.Method}, s.get)
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: machines.Service, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: machines.Method, Handler: handle}},
	}, s)
}
