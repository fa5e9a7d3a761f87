package csiclient

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Group is a group of snapshots of several volumes, taken at one instant.
type Group struct {
	Handle    string
	Snapshots []Snapshot // in the order of the volumes
	TakenAt   time.Time  // of their contents
	IsReady   bool       // volumes can be restored from all of them now
}

// GroupWanted describes a group of snapshots in CSI's terms.
type GroupWanted struct {
	Name       string
	Volumes    []string // their handles
	Parameters map[string]string
}

// TakeGroup takes snapshots of all volumes at one instant, or returns those that an earlier call took under the name.
// Failures are gRPC statuses; see IsFinal and IsAbsent.
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

// DeleteGroup removes a group with all its snapshots. It succeeds if the group is gone. Failures are gRPC statuses.
func (c *Client) DeleteGroup(ctx context.Context, handle string, members []string) error {
	_, err := csi.NewGroupControllerClient(c.connection).DeleteVolumeGroupSnapshot(ctx,
		&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: handle, SnapshotIds: members})
	return err
}
