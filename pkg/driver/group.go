package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// group serves csi.v1.GroupController.
type group struct {
	csi.UnimplementedGroupControllerServer
	decode   decoder
	volumes  *volume.Service
	features backends.Features
}

func (g *group) GroupControllerGetCapabilities(context.Context,
	*csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	return &csi.GroupControllerGetCapabilitiesResponse{Capabilities: groupCapabilities(g.features)}, nil
}

func (g *group) CreateVolumeGroupSnapshot(ctx context.Context,
	r *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	spec, err := decoded(ctx, r, g.decode.createGroup)
	if err != nil {
		return nil, err
	}
	made, err := g.volumes.CreateGroup(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: encodeGroup(made)}, nil
}

func (g *group) DeleteVolumeGroupSnapshot(ctx context.Context,
	r *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	if err := existingGroup(r.GetGroupSnapshotId(), r.GetSnapshotIds()); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeGroupSnapshotResponse{}, g.volumes.DeleteGroup(ctx, r.GetGroupSnapshotId(), r.GetSnapshotIds())
}

func (g *group) GetVolumeGroupSnapshot(ctx context.Context,
	r *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if err := existingGroup(r.GetGroupSnapshotId(), r.GetSnapshotIds()); err != nil {
		return nil, err
	}
	found, err := g.volumes.GetGroup(ctx, r.GetGroupSnapshotId(), r.GetSnapshotIds())
	if err != nil {
		return nil, err
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: encodeGroup(found)}, nil
}
