package driver

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/keylock"
)

// A volume has two keys, and an operation on it holds both, whichever service gets the request. Expansion and
// modification hold one each: a cloud that requires hours between two changes of a volume must get both in one.
func sizeKey(volume string) string     { return "volume/" + volume + "/size" }
func featuresKey(volume string) string { return "volume/" + volume + "/features" }

// lockKeys is the only table of what a request excludes: a volume's keys, the ID of a snapshot or group to delete, or
// the name of a thing to create. Reads take no lock.
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
	case *csi.ControllerExpandVolumeRequest:
		return []string{sizeKey(r.GetVolumeId())}
	case *csi.ControllerModifyVolumeRequest:
		return []string{featuresKey(r.GetVolumeId())}
	case *csi.DeleteVolumeRequest, *csi.ControllerPublishVolumeRequest, *csi.ControllerUnpublishVolumeRequest,
		*csi.NodeStageVolumeRequest, *csi.NodeUnstageVolumeRequest, *csi.NodePublishVolumeRequest,
		*csi.NodeUnpublishVolumeRequest, *csi.NodeExpandVolumeRequest:
		volume := request.(interface{ GetVolumeId() string }).GetVolumeId() //nolint:errcheck // every message above has a volume_id
		return []string{sizeKey(volume), featuresKey(volume)}
	}
	return nil
}

// checkKey checks the name or ID from which a key is made. An invalid name or ID locks nothing.
func checkKey(request any) error {
	switch r := request.(type) {
	case interface{ GetName() string }:
		return name(r.GetName())
	case interface{ GetSnapshotId() string }:
		return id("snapshot_id", r.GetSnapshotId())
	case interface{ GetGroupSnapshotId() string }:
		return id("group_snapshot_id", r.GetGroupSnapshotId())
	case interface{ GetVolumeId() string }:
		return id("volume_id", r.GetVolumeId())
	}
	return nil
}

// lock runs the call while it holds its keys. It never waits: an operation that is under way may take as long as the
// cloud does, and the orchestrator retries anyway (CSI spec, "ABORTED").
func lock(locks *keylock.Locks) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		keys := lockKeys(request)
		if len(keys) == 0 {
			return handler(ctx, request)
		}
		if err := checkKey(request); err != nil {
			return nil, err
		}
		unlock, ok, busy := locks.TryLock(keys...)
		if !ok {
			return nil, backends.Errorf(backends.Busy, "another operation on %q is under way: ask again once it has ended",
				strings.TrimSuffix(strings.TrimSuffix(busy, "/size"), "/features"))
		}
		defer unlock()
		return handler(ctx, request)
	}
}
