package csiclient

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Group is snapshots of several volumes that were taken at one instant.
type Group struct {
	Handle    string
	Snapshots []Snapshot // in the order of the volumes
	TakenAt   time.Time  // of their contents
	IsReady   bool       // whether volumes can be restored from all of them by now
}

// GroupWanted describes a group of snapshots in the terms of CSI.
type GroupWanted struct {
	Name       string
	Volumes    []string // their handles
	Parameters map[string]string
}

// TakeGroup makes snapshots of all volumes at one instant, or finds those that an earlier call took under the name.
// Failures are gRPC statuses, of which IsFinal and IsAbsent say more.
func (c *Client) TakeGroup(ctx context.Context, w GroupWanted) (Group, error) {
	response, err := csi.NewGroupControllerClient(c.connection).CreateVolumeGroupSnapshot(ctx,
		&csi.CreateVolumeGroupSnapshotRequest{Name: w.Name, SourceVolumeIds: w.Volumes, Parameters: w.Parameters})
	if err != nil {
		return Group{}, err
	}
	g := response.GetGroupSnapshot()
	taken := Group{Handle: g.GetGroupSnapshotId(), TakenAt: g.GetCreationTime().AsTime(), IsReady: g.GetReadyToUse()}
	for _, s := range g.GetSnapshots() {
		taken.Snapshots = append(taken.Snapshots, decodeSnapshot(s))
	}
	return taken, nil
}

// DeleteGroup removes a group with all its snapshots. One that is gone is no failure. Failures are gRPC statuses.
func (c *Client) DeleteGroup(ctx context.Context, handle string, members []string) error {
	_, err := csi.NewGroupControllerClient(c.connection).DeleteVolumeGroupSnapshot(ctx,
		&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: handle, SnapshotIds: members})
	return err
}
