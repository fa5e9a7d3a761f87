package ebs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func isFailed(s types.Snapshot) bool { return s.State == types.SnapshotStateError }

// checkWhole refuses a snapshot that EC2 has given up, with the Kind. It keeps its name: csi-snapshotter asks by name
// whether a snapshot is ready and keeps the first handle, so that another snapshot's answer would be taken for this
// one's.
func checkWhole(s types.Snapshot, kind backends.Kind) error {
	if !isFailed(s) {
		return nil
	}
	reason := ""
	if said := aws.ToString(s.StateMessage); said != "" {
		reason = ", " + said
	}
	return backends.Errorf(kind, "EC2 gave up the snapshot %s (state error%s) and nothing can be restored from it: "+
		"delete its VolumeSnapshot and take another", aws.ToString(s.SnapshotId), reason)
}

// abandon is for a snapshot that EC2 had given up when it was first seen. Nobody was told of the call's own one: it
// goes, and the next call takes another. Nothing is left then, so that the VolumeSnapshot may be deleted instead. One
// that was made before may have been handed out.
func (b *backend) abandon(ctx context.Context, s types.Snapshot, own bool) error {
	if !own {
		return checkWhole(s, backends.Exists)
	}
	id := aws.ToString(s.SnapshotId)
	const advice = "check the KMS key and the quotas, it is tried again"
	if err := b.dropSnapshot(ctx, id); err != nil && !isGone(err) {
		return backends.Errorf(backends.Unavailable, "EC2 gave up the snapshot %s at once, and it is still there: %s: %w", id,
			advice, err)
	}
	return backends.Errorf(backends.Denied, "EC2 gave up the snapshot %s at once: %s", id, advice)
}
