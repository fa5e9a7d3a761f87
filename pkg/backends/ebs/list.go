package ebs

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// List returns the cluster's volumes in the order of their handles: EC2's own pages have no order that would survive a change
// between two of them. Kinds: Busy for a token that is not List's.
func (b *backend) List(ctx context.Context, page backends.Page) (_ []backends.Volume, next string, err error) {
	defer annotate(&err, "list volumes", "")
	after, err := pagetoken.Parse(page.Token, func(id string) bool { return isID("vol", id) })
	if err != nil {
		return nil, "", err
	}
	found, err := b.query(ctx, filter("tag:"+b.ownerTag(), b.cluster()))
	if err != nil {
		return nil, "", err
	}
	found = slices.DeleteFunc(found, func(v types.Volume) bool {
		return v.State == types.VolumeStateDeleting || v.State == types.VolumeStateDeleted || aws.ToString(v.VolumeId) <= after
	})
	slices.SortFunc(found, func(x, y types.Volume) int { return cmp.Compare(*x.VolumeId, *y.VolumeId) })
	found, next = pagetoken.Cut(found, page.Limit, func(v types.Volume) string { return *v.VolumeId })
	volumes := make([]backends.Volume, len(found))
	for i, v := range found {
		volumes[i] = *b.view(v)
	}
	return volumes, next, nil
}

// ListSnapshots returns the cluster's snapshots, or those of one volume, in the order of their handles, without those that nobody was
// told of. Kinds: as List.
func (b *backend) ListSnapshots(ctx context.Context, volume string, page backends.Page) (_ []backends.Snapshot, next string, err error) {
	defer annotate(&err, "list snapshots", volume)
	after, err := pagetoken.Parse(page.Token, func(id string) bool { return isID("snap", id) })
	if err != nil {
		return nil, "", err
	}
	filters := []types.Filter{filter("tag:"+b.ownerTag(), b.cluster())}
	if volume != "" {
		if !isID("vol", volume) {
			return nil, "", nil
		}
		filters = append(filters, filter("volume-id", volume))
	}
	found, err := b.querySnapshots(ctx, filters...)
	if err != nil {
		return nil, "", err
	}
	found = slices.DeleteFunc(found, func(s types.Snapshot) bool { return s.State == types.SnapshotStateError })
	found = slices.DeleteFunc(withoutTwins(found), func(s types.Snapshot) bool { return aws.ToString(s.SnapshotId) <= after })
	slices.SortFunc(found, func(x, y types.Snapshot) int { return cmp.Compare(*x.SnapshotId, *y.SnapshotId) })
	found, next = pagetoken.Cut(found, page.Limit, func(s types.Snapshot) string { return *s.SnapshotId })
	snapshots := make([]backends.Snapshot, len(found))
	for i, s := range found {
		snapshots[i] = *b.viewSnapshot(s)
	}
	return snapshots, next, nil
}
