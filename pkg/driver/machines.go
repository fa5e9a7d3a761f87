package driver

import (
	"context"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/machines"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// machineServer serves stowage.v1.Machines, which is not of CSI: the state of a node's machine.
type machineServer struct{ volumes *volume.Service }

func (s machineServer) get(ctx context.Context, request *structpb.Struct) (*structpb.Struct, error) {
	query := machines.DecodeQuery(request)
	if err := nodeID("node", query.Node); err != nil {
		return nil, err
	}
	found, err := s.volumes.Machine(ctx, backends.MachineQuery(query))
	if err != nil {
		return nil, err
	}
	return machines.Machine{State: machines.State(found.State), Began: found.Began, Says: found.Says}.Encode(), nil
}
