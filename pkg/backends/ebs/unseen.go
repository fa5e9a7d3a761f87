package ebs

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// remember records the volumes that a read shows. It omits volumes that EC2 has reported as gone: the read is older. A
// volume that is shown as being deleted is gone for certain as well.
func (b *backend) remember(volumes []types.Volume, said middleware.Metadata) (there []types.Volume) {
	for _, v := range volumes {
		id := aws.ToString(v.VolumeId)
		b.bear(id, v.CreateTime, said)
		if v.State == types.VolumeStateDeleting || v.State == types.VolumeStateDeleted {
			b.shown.End(id)
		} else if b.shown.Show(id, v) {
			there = append(there, v)
		}
	}
	return there
}

// rememberSnapshots is remember for snapshots.
func (b *backend) rememberSnapshots(snapshots []types.Snapshot, said middleware.Metadata) (there []types.Snapshot) {
	for _, s := range snapshots {
		b.bear(aws.ToString(s.SnapshotId), s.StartTime, said)
		if b.kept.Show(aws.ToString(s.SnapshotId), s) {
			there = append(there, s)
		}
	}
	return there
}

// ours returns a volume of this cluster as it was shown a moment ago. Only its ID, owner and name may be used. It saves
// the look before a request on which EC2 decides anyway. Kinds: those of ownVolume.
func (b *backend) ours(ctx context.Context, handle string) (types.Volume, error) {
	if v, ok := b.shown.Lately(handle, youngOwner); ok && b.owned(handle, v.Tags) == nil {
		return v, nil
	}
	return b.ownVolume(ctx, handle)
}

// oursKept fails for a snapshot that is not this cluster's, as it was shown a moment ago. Kinds: those of ownSnapshot.
func (b *backend) oursKept(ctx context.Context, handle string) error {
	if s, ok := b.kept.Lately(handle, youngOwner); ok && b.owned(handle, s.Tags) == nil {
		return nil
	}
	_, err := b.ownSnapshot(ctx, handle)
	return err
}

// errUnseen means that a read does not show a thing, which may be too new for it.
var errUnseen = errors.New("EC2 does not show it, and has not said that it is gone")

// absent returns the error for a volume that a read does not show. Kinds: NotFound when EC2 has said that it is gone,
// or no read has shown it for as long as EC2 may take; Unavailable, for now.
func (b *backend) absent(id string) error {
	if b.shown.Ended(id) || b.shown.Miss(id) > b.config.Timing.Settle {
		return noVolume(id)
	}
	return backends.Errorf(backends.Unavailable, "volume %q: %w: ask again", id, errUnseen)
}

// shows waits for a volume that a read did not show, until a read shows it or it certainly does not exist. It does not
// ask EC2 before reads had the time to show the volume: if another process has just created it, EC2 may deny it, and
// this process does not know that it is new. Kinds: NotFound; Unavailable when EC2 still has it, or does not answer;
// Busy when the call ends before that.
func (b *backend) shows(ctx context.Context, handle string) (types.Volume, error) {
	v, err := b.volumes.Until(ctx, "appear", handle,
		func(_ types.Volume, err error) (bool, error) { return err == nil, err })
	return v, b.proven(ctx, handle, err)
}

// first returns the first of several things, or the zero value if there are none.
func first[T any](of []T) (none T) {
	if len(of) == 0 {
		return none
	}
	return of[0]
}
