package csiclient

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Snapshot is an existing snapshot.
type Snapshot struct {
	Handle    string
	Volume    string    // the handle of its volume
	SizeBytes int64     // minimum size of a volume restored from it
	TakenAt   time.Time // of its contents
	IsReady   bool      // a volume can be restored from it now
}

// SnapshotWanted describes a snapshot in CSI's terms.
type SnapshotWanted struct {
	Name       string
	Volume     string // its handle
	Parameters map[string]string
	Segments   map[string]string // the only allowed place
}

// TakeSnapshot takes a snapshot of a volume, or returns the existing snapshot of that name. Failures are gRPC statuses;
// see IsFinal and IsAbsent.
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

// DeleteSnapshot removes a snapshot. It succeeds if the snapshot is gone. Failures are gRPC statuses.
func (c *Client) DeleteSnapshot(ctx context.Context, handle string) error {
	_, err := c.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: handle})
	return err
}
