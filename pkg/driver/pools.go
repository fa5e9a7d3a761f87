package driver

import (
	"context"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/pools"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// poolServer serves stowage.v1.Pools, which is not of CSI: the pools from which this node's volumes are taken.
type poolServer struct{ volumes *volume.Service }

func (s poolServer) list(ctx context.Context, _ *structpb.Struct) (*structpb.Struct, error) {
	found, err := s.volumes.Pools(ctx)
	if err != nil {
		return nil, err
	}
	var all []pools.Pool
	for _, p := range found {
		all = append(all, pools.Pool{Name: p.Name, Type: p.Type, AvailableBytes: p.AvailableBytes,
			LargestBytes: p.LargestBytes, Problem: p.Problem})
	}
	return pools.Encode(all), nil
}
