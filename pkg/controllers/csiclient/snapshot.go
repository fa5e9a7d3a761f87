package csiclient

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Snapshot is a snapshot that was taken.
type Snapshot struct {
	Handle    string
	Volume    string    // the handle of the volume that it is of
	SizeBytes int64     // the least size of a volume that is restored from it
	TakenAt   time.Time // of its contents
	IsReady   bool      // whether a volume can be restored from it by now
}

// SnapshotWanted describes a snapshot in the terms of CSI.
type SnapshotWanted struct {
	Name       string
	Volume     string // its handle
	Parameters map[string]string
	Segments   map[string]string // the only place that the snapshot may be in
}

// TakeSnapshot makes a snapshot of a volume, or finds the one of that name. Failures are gRPC statuses, of which
// IsFinal and IsAbsent say more.
func (c *Client) TakeSnapshot(ctx context.Context, w SnapshotWanted) (Snapshot, error) {
	response, err := c.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: w.Name, SourceVolumeId: w.Volume,
		Parameters: w.Parameters, AccessibilityRequirements: requirement(w.Segments)})
	if err != nil {
		return Snapshot{}, err
	}
	return decodeSnapshot(response.GetSnapshot()), nil
}

func decodeSnapshot(s *csi.Snapshot) Snapshot {
	return Snapshot{Handle: s.GetSnapshotId(), Volume: s.GetSourceVolumeId(), SizeBytes: s.GetSizeBytes(),
		TakenAt: s.GetCreationTime().AsTime(), IsReady: s.GetReadyToUse()}
}

// DeleteSnapshot removes a snapshot. One that is gone is no failure. Failures are gRPC statuses.
func (c *Client) DeleteSnapshot(ctx context.Context, handle string) error {
	_, err := c.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: handle})
	return err
}
