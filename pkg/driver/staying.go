package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

// staying makes the refusal of a request to stage or publish a volume non-final while the volume is staged or published
// there. Package node does so for what it refuses itself. The edge refuses a request before that: the kubelet may have
// got other mount options or another access mode since the volume was staged, and an older release may not know what a
// newer one has written. After a final code the kubelet forgets the mount, and the volume may be detached beneath it.
func staying(here func() *node.Service) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		volumes := here()
		if volumes == nil || !backends.Is(err, backends.Invalid) && !backends.Is(err, backends.Unsupported) {
			return response, err
		}
		switch r := request.(type) {
		case *csi.NodeStageVolumeRequest:
			err = volumes.StaysStaged(ctx, r.GetVolumeId(), r.GetStagingTargetPath(), err)
		case *csi.NodePublishVolumeRequest:
			err = volumes.StaysPublished(ctx, r.GetVolumeId(), r.GetTargetPath(), err)
		}
		return response, err
	}
}
