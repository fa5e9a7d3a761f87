package ebs

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/limits"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// A node that may not ask EC2 takes this for granted. It is less than what next to any instance allows, on purpose: too
// few volumes leave a pod pending, which a person and an autoscaler see, and which more nodes cure. Too many send pods
// to a node where their volumes can never be attached, which is what users complain about most. And without any limit
// at all, or by refusing to say one, the node would be worse off: full without end, or unable to use the volumes that
// it has.
const (
	// assumedAttachments is for instances on which interfaces and disks share 28 attachments, or 27 ("Amazon EBS volume
	// limits for Amazon EC2 instances"). A few kinds, mostly with accelerators, have fewer: for them volumeAttachLimit
	// must be set.
	assumedAttachments = 26
	// assumedInterfaces is what up to 32 processors can have, when even the metadata service does not tell.
	assumedInterfaces = 8
	// rootDisks is what an instance has started from.
	rootDisks = 1
)

// kindLimit is what EC2 says of a kind of instances. It does not change.
type kindLimit struct {
	attachments int
	shared      bool
}

// Limit is how many volumes can be attached to this instance; 0 when EC2 does not know its type's limit.
func (n *node) Limit(ctx context.Context) (_ int64, err error) {
	defer annotate(&err, "attach limit of", n.self.ID)
	m, err := n.machine.Get(ctx)
	if isBarred(err) {
		m, err = n.guess(ctx, err)
	}
	return m.Volumes(), err
}

// isBarred reports whether a node may not ask EC2, or has nothing to prove who it is, and that is not likely to change
// soon.
func isBarred(err error) bool { return backends.Is(err, backends.Denied) || isOfService(err) }

// look asks EC2 about this instance.
func (n *node) look(ctx context.Context) (limits.Machine, error) {
	instance, err := n.b.instances.Do(ctx, n.self.ID)
	if err != nil {
		return limits.Machine{}, err
	}
	m := limits.Machine{Interfaces: len(instance.NetworkInterfaces), Reserved: n.b.config.ReservedAttachments}
	for _, disk := range instance.BlockDeviceMappings {
		if isForeign(disk) {
			m.ForeignDisks++
		}
	}
	return n.typed(ctx, m, instance.InstanceType)
}

// isForeign reports whether the driver has not attached a disk. Its names are also those that AWS advises for the data
// disks of an image, /dev/sdf to /dev/sdp; but what is deleted with the instance is none of the driver's, which never
// asks for that.
func isForeign(disk types.InstanceBlockDeviceMapping) bool {
	return !slices.Contains(deviceNames(), aws.ToString(disk.DeviceName)) ||
		disk.Ebs != nil && aws.ToBool(disk.Ebs.DeleteOnTermination)
}

// guess is what the instance itself knows of its attachments, and never too little of it.
func (n *node) guess(ctx context.Context, because error) (limits.Machine, error) {
	n.tellBarred(because)
	m := limits.Machine{Interfaces: assumedInterfaces, ForeignDisks: rootDisks, Reserved: n.b.config.ReservedAttachments}
	if count, err := n.imds.interfaces(ctx); err == nil {
		m.Interfaces = max(count, 1)
	}
	disks, err := n.disks()
	if err != nil {
		return m, err
	}
	for _, disk := range disks {
		if !strings.HasPrefix(disk.serial, "vol") { // the instance's own
			m.ForeignDisks++
		}
	}
	if isOfService(because) {
		return n.typed(ctx, m, "") // Whoever cannot prove who it is need not ask again.
	}
	return n.typed(ctx, m, types.InstanceType(n.self.Type))
}

// typed fills in what the instance's type allows; an empty one when nobody can tell.
func (n *node) typed(ctx context.Context, m limits.Machine, kind types.InstanceType) (limits.Machine, error) {
	if m.Attachments = n.b.config.VolumeAttachLimit; m.Attachments > 0 {
		return m, nil
	}
	known, err := n.kindLimit(ctx, kind)
	if isBarred(err) {
		n.tellBarred(err)
		known, err = kindLimit{assumedAttachments, true}, nil
	}
	m.Attachments, m.SharedWithInterfaces = known.attachments, known.shared
	return m, err
}

// kindLimit asks EC2 about this instance's type, once.
func (n *node) kindLimit(ctx context.Context, kind types.InstanceType) (kindLimit, error) {
	if known := n.kind.Load(); known != nil {
		return *known, nil
	}
	if kind == "" {
		return kindLimit{assumedAttachments, true}, nil
	}
	out, err := n.b.api.DescribeInstanceTypes(ctx,
		&ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{kind}})
	if err != nil {
		return kindLimit{}, ofEC2(err)
	}
	var known kindLimit
	for _, t := range out.InstanceTypes {
		if t.EbsInfo != nil {
			known = kindLimit{int(aws.ToInt32(t.EbsInfo.MaximumEbsAttachments)),
				t.EbsInfo.AttachmentLimitType == types.AttachmentLimitTypeShared}
		}
	}
	if known.attachments > 0 {
		n.kind.Store(&known)
	}
	return known, nil
}

// tellBarred tells, once, what is missing and what is done about it.
func (n *node) tellBarred(because error) {
	n.barred.Do(func() {
		n.b.log.Error("this node may not ask EC2 how many volumes can be attached to it: a low number is assumed; "+
			"allow ec2:DescribeInstances and ec2:DescribeInstanceTypes, or set volumeAttachLimit in the configuration",
			"instance", n.self.ID, "reason", failure.OneLine(because).Error())
	})
}
