package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/node"
)

// nodeServer serves csi.v1.Node.
type nodeServer struct {
	csi.UnimplementedNodeServer
	decode   decoder
	volumes  *node.Service
	delegate bool // whether VOLUME_MOUNT_GROUP is advertised
}

func (n *nodeServer) NodeStageVolume(ctx context.Context,
	r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	request, err := decoded(ctx, r, n.decode.stageVolume)
	if err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, n.volumes.Stage(ctx, request)
}

func (n *nodeServer) NodeUnstageVolume(ctx context.Context,
	r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	staging, err := volumeAt(r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, n.volumes.Unstage(ctx, r.GetVolumeId(), staging)
}

func (n *nodeServer) NodePublishVolume(ctx context.Context,
	r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	request, err := decoded(ctx, r, n.decode.publishToTarget)
	if err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, n.volumes.Publish(ctx, request)
}

func (n *nodeServer) NodeUnpublishVolume(ctx context.Context,
	r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target, err := volumeAt(r.GetVolumeId(), "target_path", r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, n.volumes.Unpublish(ctx, r.GetVolumeId(), target)
}

func (n *nodeServer) NodeGetVolumeStats(ctx context.Context,
	r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	where, err := placeOf(r.GetVolumeId(), r.GetVolumePath())
	if err != nil {
		return nil, err
	}
	stats, err := n.volumes.Stats(ctx, r.GetVolumeId(), where)
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: encodeUsage(stats)}, nil
}

func encodeUsage(stats node.Stats) []*csi.VolumeUsage {
	bytes := stats.Bytes
	usage := []*csi.VolumeUsage{{
		Unit: csi.VolumeUsage_BYTES, Total: bytes.Total, Used: bytes.Used, Available: bytes.Available,
	}}
	if inodes := stats.Inodes; inodes.Total > 0 {
		usage = append(usage, &csi.VolumeUsage{
			Unit: csi.VolumeUsage_INODES, Total: inodes.Total, Used: inodes.Used, Available: inodes.Available,
		})
	}
	return usage
}

func (n *nodeServer) NodeExpandVolume(ctx context.Context,
	r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	request, err := decoded(ctx, r, n.decode.expandOnNode)
	if err != nil {
		return nil, err
	}
	size, err := n.volumes.Expand(ctx, request)
	if err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}

func (n *nodeServer) NodeGetCapabilities(context.Context,
	*csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: nodeCapabilities(n.decode.features, n.delegate)}, nil
}

func (n *nodeServer) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	info, err := n.volumes.Info(ctx)
	if err != nil {
		return nil, err
	}
	response := &csi.NodeGetInfoResponse{NodeId: info.NodeID, MaxVolumesPerNode: info.MaxVolumes}
	if len(info.Topology) > 0 {
		response.AccessibleTopology = &csi.Topology{Segments: info.Topology}
	}
	return response, nil
}
