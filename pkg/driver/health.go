package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func (c *controller) ControllerGetVolumeHealth(ctx context.Context,
	r *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	issues, err := c.volumes.Health(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: encodeHealth(r.GetVolumeId(), issues)}, nil
}

func (c *controller) ControllerListVolumeHealth(ctx context.Context,
	r *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	list := func(where backends.Page) (*csi.ControllerListVolumeHealthResponse, error) {
		unwell, next, err := c.volumes.ListHealth(ctx, where)
		if err != nil {
			return nil, err
		}
		response := &csi.ControllerListVolumeHealthResponse{NextToken: next}
		for _, v := range unwell {
			response.Entries = append(response.Entries, encodeHealth(v.Handle, v.Issues))
		}
		return response, nil
	}
	return paged(r.GetMaxEntries(), r.GetStartingToken(), list)
}

func (n *nodeServer) NodeGetVolumeHealth(ctx context.Context,
	r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	publish, err := optionalPath("volume_publish_path", r.GetVolumePublishPath())
	if err != nil {
		return nil, err
	}
	staging, err := optionalPath("staging_target_path", r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	issues, err := n.volumes.Health(ctx, r.GetVolumeId(), publish, staging)
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: encodeHealth(r.GetVolumeId(), issues)}, nil
}

func (n *nodeServer) NodeGetStorageHealth(ctx context.Context,
	_ *csi.NodeGetStorageHealthRequest) (*csi.NodeGetStorageHealthResponse, error) {
	issues, err := n.volumes.StorageHealth(ctx)
	if err != nil {
		return nil, err
	}
	return encodeStorageHealth(issues), nil
}
