package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/keylock"
)

// lockKeys is the only table of what a request excludes: one key for a volume, whichever service the
// request comes to, and the name of what is yet to be made. Reading takes no lock.
func lockKeys(request any) []string {
	switch r := request.(type) {
	case *csi.CreateVolumeRequest:
		return []string{"name/" + r.GetName()}
	case *csi.CreateSnapshotRequest:
		return []string{"snapshot-name/" + r.GetName()}
	case *csi.CreateVolumeGroupSnapshotRequest:
		return []string{"group-name/" + r.GetName()}
	case *csi.DeleteSnapshotRequest:
		return []string{"snapshot/" + r.GetSnapshotId()}
	case *csi.DeleteVolumeGroupSnapshotRequest:
		return []string{"group/" + r.GetGroupSnapshotId()}
	case *csi.DeleteVolumeRequest, *csi.ControllerPublishVolumeRequest, *csi.ControllerUnpublishVolumeRequest,
		*csi.ControllerExpandVolumeRequest, *csi.ControllerModifyVolumeRequest,
		*csi.NodeStageVolumeRequest, *csi.NodeUnstageVolumeRequest, *csi.NodePublishVolumeRequest,
		*csi.NodeUnpublishVolumeRequest, *csi.NodeExpandVolumeRequest:
		return []string{"volume/" + request.(interface{ GetVolumeId() string }).GetVolumeId()} //nolint:errcheck // every message above has a volume_id
	}
	return nil
}

// lock runs the call while it holds its keys. It never waits: an operation that is under way may take
// as long as the cloud does, and the orchestrator asks again anyway (CSI spec, "ABORTED").
func lock(locks *keylock.Locks) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		keys := lockKeys(request)
		if len(keys) == 0 {
			return handler(ctx, request)
		}
		unlock, ok, busy := locks.TryLock(keys...)
		if !ok {
			return nil, backends.Errorf(backends.Busy, "another operation on %q is under way: ask again once it has ended", busy)
		}
		defer unlock()
		return handler(ctx, request)
	}
}
