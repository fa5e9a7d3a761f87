package ebs

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// oldestSnapshot returns the snapshot that callers get if several have the same name.
func oldestSnapshot(found []types.Snapshot) *types.Snapshot {
	if len(found) == 0 {
		return nil
	}
	oldest := slices.MinFunc(found, byAge)
	return &oldest
}

func byAge(x, y types.Snapshot) int {
	return cmp.Or(aws.ToTime(x.StartTime).Compare(aws.ToTime(y.StartTime)), cmp.Compare(*x.SnapshotId, *y.SnapshotId))
}

// twins returns the IDs of further snapshots that were created for the same request: CreateSnapshot has no client
// token, so a request whose answer was lost with the process may be sent again. No caller knows them. A user's copy has
// the name too, if tags were copied, but never the volume. An intact snapshot is no twin of a failed one: earlier
// versions returned the intact one in its place.
func (b *backend) twins(ctx context.Context, s types.Snapshot) (ids []string, err error) {
	name, named := tag(s.Tags, snapshotNameTag)
	if !named {
		return nil, nil
	}
	found, err := b.querySnapshots(ctx, filter("tag:"+snapshotNameTag, name), filter("tag:"+b.ownerTag(), b.cluster()),
		filter("volume-id", aws.ToString(s.VolumeId)))
	found = append(found, b.kept.Which(func(other types.Snapshot) bool { // A read may be older than a twin.
		value, has := tag(other.Tags, snapshotNameTag)
		return has && value == name && aws.ToString(other.VolumeId) == aws.ToString(s.VolumeId) &&
			b.owned("", other.Tags) == nil
	})...)
	failed := isFailed(s) || slices.ContainsFunc(found,
		func(other types.Snapshot) bool { return *other.SnapshotId == *s.SnapshotId && isFailed(other) })
	for _, other := range found {
		if *other.SnapshotId != *s.SnapshotId && (isFailed(other) || !failed) {
			ids = append(ids, *other.SnapshotId)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// yield removes the snapshot that a request has just created, because another process has meanwhile created one of the
// name, of another volume. No caller knows the removed one, and no search for twins would find it. The caller may have
// left already. If the answer to the request was lost, made is nil: a snapshot that the request has created stays,
// because nothing tells it from one of another process. Kinds: Exists; Unavailable when it is still there.
func (b *backend) yield(ctx context.Context, name, volume string, made *ec2.CreateSnapshotOutput) error {
	exists := backends.Errorf(backends.Exists, "there is a snapshot %q already, of volume %s", name, volume)
	if made == nil {
		return exists
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.Timing.Call)
	defer cancel()
	id := aws.ToString(made.SnapshotId)
	if err := b.dropSnapshot(ctx, id); err != nil && !isGone(err) {
		return backends.Errorf(backends.Unavailable, "%w; the snapshot %s was taken meanwhile, and is still there: "+
			"delete it: %w", exists, id, err)
	}
	return exists
}

// withoutTwins keeps the oldest intact snapshot of each name and volume, and the failed ones that are older.
func withoutTwins(found []types.Snapshot) []types.Snapshot {
	slices.SortFunc(found, byAge)
	known := map[[2]string]bool{}
	return slices.DeleteFunc(found, func(s types.Snapshot) bool {
		name, named := tag(s.Tags, snapshotNameTag)
		key := [2]string{name, aws.ToString(s.VolumeId)}
		twin := named && known[key]
		known[key] = known[key] || !isFailed(s)
		return twin
	})
}
