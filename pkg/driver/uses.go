package driver

import (
	"context"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/uses"
)

// useServer serves stowage.v1.Uses, which is not of CSI: whether this node uses a volume.
type useServer struct{ volumes *node.Service }

func (s useServer) get(ctx context.Context, request *structpb.Struct) (*structpb.Struct, error) {
	query := uses.DecodeQuery(request)
	if err := id("volume", query.Volume); err != nil {
		return nil, err
	}
	where := s.volumes.InUse(ctx, query.Volume)
	return uses.Use{InUse: where != "", Says: where}.Encode(), nil
}
