package ebs

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// ownerTag is the key of the tag by which the driver's own things are listed; its value is the cluster.
func (b *backend) ownerTag() string { return b.driver + "/cluster" }

// cluster is the cluster's name in the tag.
func (b *backend) cluster() string { return tagValue(b.config.ClusterID) }

// owned refuses a thing that is not this cluster's: anyone who may write a PersistentVolume may name any volume of the
// account in it. Only the tag makes a volume this cluster's, and writing it takes rights in AWS. Kinds: Denied.
func (b *backend) owned(id string, tags []types.Tag) error {
	owner, ok := tag(tags, b.ownerTag())
	switch {
	case ok && owner == b.cluster():
		return nil
	case ok && owner == formerly:
		return backends.Errorf(backends.Denied,
			"%s belongs to the cluster %q by its tag %s, and this cluster is %q: earlier versions called every cluster that: "+
				"if it is this one's, change the tag, or set clusterID to %q in the driver's configuration",
			id, owner, b.ownerTag(),
			b.cluster(), formerly)
	case ok:
		return backends.Errorf(backends.Denied,
			"%s belongs to the cluster %q by its tag %s, and this cluster is %q: it is left alone", id, owner, b.ownerTag(),
			b.cluster())
	default:
		return backends.Errorf(backends.Denied,
			"%s belongs to no cluster: an administrator makes it this one's by the tag %s=%s", id, b.ownerTag(), b.cluster())
	}
}

// youngOwner is how old a read may be that shows the owner of a thing that is to be changed: an administrator may give
// the thing to another cluster, whose data it then has.
const youngOwner = 12 * time.Second

// formerly is the ID of every cluster without a configured one in earlier versions.
const formerly = "default"

// current looks at a volume of which the owner is to be known. Unlike volume, it waits if no read shows the volume now.
// Kinds: those of volume.
func (b *backend) current(ctx context.Context, handle string) (types.Volume, error) {
	v, err := b.volume(ctx, handle)
	if err != nil {
		return v, err
	}
	if _, young := b.shown.Lately(handle, youngOwner); young {
		return v, nil
	}
	return b.shows(ctx, handle) // volume has asked whether it is gone
}

// ownVolume looks at a volume that is to be changed, or whose data are to be read. Kinds: Denied; NotFound; Busy and
// Unavailable when EC2 does not show it yet, or does not answer.
func (b *backend) ownVolume(ctx context.Context, handle string) (types.Volume, error) {
	v, err := b.current(ctx, handle)
	if err != nil {
		return v, err
	}
	last, ok := b.shown.Last(handle) // Another call's read may be newer.
	if !ok {
		last = v
	}
	return v, cmp.Or(b.owned(handle, v.Tags), b.owned(handle, last.Tags))
}

// ownSnapshot is ownVolume for a snapshot.
func (b *backend) ownSnapshot(ctx context.Context, handle string) (types.Snapshot, error) {
	s, err := b.snapshot(ctx, handle)
	if err != nil {
		return s, err
	}
	last, young := b.kept.Lately(handle, youngOwner)
	switch {
	case !young && b.refused(ctx, handle):
		return s, noSnapshot(handle)
	case !young:
		return s, unseenSnapshot(handle)
	}
	return s, cmp.Or(b.owned(handle, s.Tags), b.owned(handle, last.Tags))
}

// identifyCluster finds out the cluster's ID unless it is configured. Kinds: Invalid.
func (c *Config) identifyCluster(ctx context.Context, options backends.Options) (err error) {
	if c.ClusterID != "" || options.NodeOnly {
		return nil
	}
	const way = "set clusterID, an ID that no other cluster has which shares the AWS account"
	if options.Cluster == nil {
		return backends.Errorf(backends.Invalid,
			"clusterID is missing in the configuration, and there is no Kubernetes to ask which cluster this is: %s", way)
	}
	if c.ClusterID, err = options.Cluster(ctx); err != nil {
		return backends.Errorf(backends.Invalid,
			"clusterID is missing in the configuration, and which cluster this is cannot be found out: %w: %s", err, way)
	}
	options.Log.Info("this cluster is known", "cluster", c.ClusterID)
	return nil
}
