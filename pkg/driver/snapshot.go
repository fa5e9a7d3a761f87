package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func (c *controller) CreateSnapshot(ctx context.Context,
	r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	spec, err := decoded(ctx, r, c.decode.createSnapshot)
	if err != nil {
		return nil, err
	}
	made, err := c.volumes.CreateSnapshot(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: encodeSnapshot(made)}, nil
}

func (c *controller) DeleteSnapshot(ctx context.Context,
	r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if err := id("snapshot_id", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, c.volumes.DeleteSnapshot(ctx, r.GetSnapshotId())
}

func (c *controller) GetSnapshot(ctx context.Context, r *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if err := id("snapshot_id", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	found, err := c.volumes.GetSnapshot(ctx, r.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	return &csi.GetSnapshotResponse{Snapshot: encodeSnapshot(found)}, nil
}

func (c *controller) ListSnapshots(ctx context.Context,
	r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	return paged(r.GetMaxEntries(), r.GetStartingToken(), func(where backends.Page) (*csi.ListSnapshotsResponse, error) {
		found, next, err := c.volumes.ListSnapshots(ctx, r.GetSnapshotId(), r.GetSourceVolumeId(), where)
		if err != nil {
			return nil, err
		}
		response := &csi.ListSnapshotsResponse{NextToken: next}
		for i := range found {
			response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: encodeSnapshot(&found[i])})
		}
		return response, nil
	})
}
