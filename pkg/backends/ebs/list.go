package ebs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// lists keep the results of enumerations. EC2's own pages have no order that survives a change between two pages.
type lists struct {
	volumes   listings[backends.Volume]
	snapshots listings[backends.Snapshot]
	unwell    listings[backends.VolumeHealth]
}

// List returns the cluster's volumes in the order of their handles. Kinds: Busy for a token that is not List's.
func (b *backend) List(ctx context.Context, page backends.Page) (_ []backends.Volume, next string, err error) {
	defer annotate(&err, "list volumes", "")
	return b.lists.volumes.page(page, "vol", "", func(v backends.Volume) string { return v.Handle },
		func() ([]backends.Volume, error) {
			found, err := b.query(ctx, filter("tag:"+b.ownerTag(), b.cluster()))
			if err != nil {
				return nil, err
			}
			var volumes []backends.Volume
			for _, v := range found {
				if v.State != types.VolumeStateDeleting && v.State != types.VolumeStateDeleted {
					volumes = append(volumes, *b.view(v))
				}
			}
			return volumes, nil
		})
}

// ListSnapshots returns the cluster's snapshots, or those of one volume, in the order of their handles. It omits
// snapshots that no caller knows. A failed snapshot is not ready. Kinds: as List.
func (b *backend) ListSnapshots(ctx context.Context, volume string,
	page backends.Page) (_ []backends.Snapshot, next string, err error) {
	defer annotate(&err, "list snapshots", volume)
	filters := []types.Filter{filter("tag:"+b.ownerTag(), b.cluster())}
	if volume != "" {
		filters = append(filters, filter("volume-id", volume))
	}
	return b.lists.snapshots.page(page, "snap", volume, func(s backends.Snapshot) string { return s.Handle },
		func() ([]backends.Snapshot, error) {
			if volume != "" && !isID("vol", volume) {
				return nil, nil
			}
			found, err := b.querySnapshots(ctx, filters...)
			if err != nil {
				return nil, err
			}
			if found, err = b.stillKept(ctx, found); err != nil {
				return nil, err
			}
			var snapshots []backends.Snapshot
			for _, s := range withoutTwins(found) {
				snapshots = append(snapshots, *b.viewSnapshot(s))
			}
			return snapshots, nil
		})
}
