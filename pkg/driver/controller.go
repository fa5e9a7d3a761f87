package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// controller serves csi.v1.Controller.
type controller struct {
	csi.UnimplementedControllerServer
	decode  decoder
	volumes *volume.Service
	node    *node.Service // the node service in the same process, if any
	holds   *holdReader   // nil if not configured
}

func (c *controller) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	want, err := decoded(ctx, r, c.decode.createVolume)
	if err != nil {
		return nil, err
	}
	made, err := c.volumes.Create(ctx, want.spec, want.source)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: encodeVolume(made)}, nil
}

func (c *controller) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if c.node != nil {
		if err := c.node.CheckUnused(ctx, r.GetVolumeId()); err != nil {
			return nil, err
		}
	}
	return &csi.DeleteVolumeResponse{}, c.volumes.Delete(ctx, r.GetVolumeId())
}

func (c *controller) ControllerPublishVolume(ctx context.Context,
	r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	request, err := decoded(ctx, r, c.decode.publishVolume)
	if err != nil {
		return nil, err
	}
	attributes, err := c.volumes.Publish(ctx, request)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: volume.EncodeContext(nil, attributes)}, nil
}

func (c *controller) ControllerUnpublishVolume(ctx context.Context,
	r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetNodeId() != "" { // An empty one means all nodes.
		if err := nodeID("node_id", r.GetNodeId()); err != nil {
			return nil, err
		}
	}
	if err := c.holds.check(ctx, r.GetVolumeId(), r.GetNodeId()); err != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, c.volumes.Unpublish(ctx, r.GetVolumeId(), r.GetNodeId())
}

func (c *controller) ValidateVolumeCapabilities(ctx context.Context,
	r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	want, err := access(r.GetVolumeCapabilities())
	if err != nil {
		return nil, err
	}
	err = c.volumes.Validate(ctx, r.GetVolumeId(), want)
	if backends.Is(err, backends.Invalid) {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: readable(err.Error())}, nil
	}
	if err != nil {
		return nil, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		// The omitted fields were not compared with the volume.
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.GetVolumeCapabilities()},
	}, nil
}

func (c *controller) ControllerGetVolume(ctx context.Context,
	r *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	found, err := c.volumes.Get(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{
		Volume: encodeVolume(found),
		Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: found.PublishedNodes},
	}, nil
}

func (c *controller) ListVolumes(ctx context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	return paged(r.GetMaxEntries(), r.GetStartingToken(), func(where backends.Page) (*csi.ListVolumesResponse, error) {
		found, next, err := c.volumes.List(ctx, where)
		if err != nil {
			return nil, err
		}
		response := &csi.ListVolumesResponse{NextToken: next}
		for i := range found {
			response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{
				Volume: encodeVolume(&found[i]),
				Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: found[i].PublishedNodes},
			})
		}
		return response, nil
	})
}

func (c *controller) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	query, err := decoded(ctx, r, c.decode.capacityQuery)
	if err != nil {
		return nil, err
	}
	free, err := c.volumes.Capacity(ctx, query)
	if err != nil {
		return nil, err
	}
	response := &csi.GetCapacityResponse{AvailableCapacity: free.AvailableBytes}
	if free.LargestBytes > 0 {
		response.MaximumVolumeSize = wrapperspb.Int64(free.LargestBytes)
	}
	if free.SmallestBytes > 0 {
		response.MinimumVolumeSize = wrapperspb.Int64(free.SmallestBytes)
	}
	return response, nil
}

func (c *controller) ControllerExpandVolume(ctx context.Context,
	r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	size, err := decoded(ctx, r, c.decode.expandVolume)
	if err != nil {
		return nil, err
	}
	if err := c.checkUse(ctx, r.GetVolumeId(), r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	grown, err := c.volumes.Expand(ctx, r.GetVolumeId(), size)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: grown.CapacityBytes,
		NodeExpansionRequired: grown.NodeExpansion}, nil
}

// checkUse refuses a use that the volume does not support; nil is no use.
func (c *controller) checkUse(ctx context.Context, handle string, capability *csi.VolumeCapability) error {
	if capability == nil {
		return nil
	}
	want, err := access([]*csi.VolumeCapability{capability})
	if err != nil {
		return err
	}
	return c.volumes.Validate(ctx, handle, want)
}

func (c *controller) ControllerModifyVolume(ctx context.Context,
	r *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if len(r.GetMutableParameters()) == 0 {
		return nil, backends.Errorf(backends.Invalid, "mutable_parameters is empty: name what is to be changed")
	}
	mutable, err := c.decode.mutable(r.GetMutableParameters())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, c.volumes.Modify(ctx, r.GetVolumeId(), mutable)
}

func (c *controller) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: controllerCapabilities(c.volumes.Features())}, nil
}
