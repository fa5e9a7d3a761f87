package ebs

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// hasFailed reports whether EC2 has given up a volume, during its creation or since. Its data are lost, and it never
// leaves that state ("error" in "EBS volume lifecycle", EBS User Guide).
func hasFailed(v types.Volume) bool { return v.State == types.VolumeStateError }

// isLost reports whether a volume has failed and is not attached. An attached volume cannot be removed yet, and keeps
// its name.
func isLost(v types.Volume) bool { return hasFailed(v) && len(v.Attachments) == 0 }

// usable refuses a failed volume, and removes it so that another one can be created in its place. Kinds: Unavailable.
func (b *backend) usable(ctx context.Context, v types.Volume) error {
	if !hasFailed(v) {
		return nil
	}
	return b.givenUp(ctx, v)
}

// givenUp removes a failed volume unless it is attached, and returns the error for it.
func (b *backend) givenUp(ctx context.Context, v types.Volume) error {
	if !isLost(v) {
		return backends.Errorf(backends.Unavailable,
			"EC2 has given up the volume %s (state error), and it is attached to %s: once it is detached, it is made anew",
			*v.VolumeId, strings.Join(b.view(v).PublishedNodes, " and "))
	}
	b.clear(ctx, []types.Volume{v})
	return backends.Errorf(backends.Unavailable,
		"EC2 has given up the volume %s (state error): check the KMS key and the quotas, it is made anew", *v.VolumeId)
}

// clear removes the lost volumes of a name: no other path leads to them.
func (b *backend) clear(ctx context.Context, found []types.Volume) {
	for _, v := range found {
		if !isLost(v) {
			continue
		}
		if err := b.askDelete(ctx, *v.VolumeId); err != nil {
			b.log.Warn("a volume that has failed is left", "volume", *v.VolumeId, "error", err)
		}
	}
}

func isFailed(s types.Snapshot) bool { return s.State == types.SnapshotStateError }

// checkWhole refuses, with the Kind, a snapshot that EC2 has given up. The snapshot keeps its name: csi-snapshotter
// asks by name whether a snapshot is ready and keeps the first handle, so it would take another snapshot's answer for
// this one's.
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

// abandon handles a snapshot that EC2 had given up when it was first seen. If it is the call's own, no caller knows it:
// it is deleted, and the next call takes another. Nothing is left behind, so the VolumeSnapshot can be deleted instead.
// An earlier snapshot may have been handed out.
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
