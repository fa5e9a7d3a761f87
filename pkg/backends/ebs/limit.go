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

// A node that may not ask EC2 assumes these numbers. They are lower than the limit of almost every instance, on
// purpose. Too few volumes leave a pod pending, which people and autoscalers see, and which more nodes cure. Too many
// send pods to a node where their volumes can never be attached, which is the most frequent complaint of users. Without
// a limit the node would be filled without end; if it failed to report one, it could not use the volumes that it has.
const (
	// assumedAttachments is for instances whose interfaces and disks share 28 attachments, or 27 ("Amazon EBS volume
	// limits for Amazon EC2 instances"). Like EC2's numbers, it leaves out the primary interface. A few types, mostly with
	// accelerators, have fewer: they need volumeAttachLimit.
	assumedAttachments = 25
	// assumedInterfaces is the maximum with up to 32 processors, if even the metadata service does not tell.
	assumedInterfaces = 8
	// rootDisks counts the disk from which an instance has started.
	rootDisks = 1
)

// kindLimit is the limit for an instance type. It does not change. EC2's number for a type whose volumes share their
// attachments already leaves out the primary interface, and the disks that belong to the type. So 27 is its number for
// a type with 28 attachments, and 26 for one that has a disk of its own. aws-ebs-csi-driver, whose table of limits is
// generated from EC2's numbers, counts in the same way.
type kindLimit struct {
	attachments int
	shared      bool
	assumed     bool // It is not EC2's number.
}

// assume returns the limit for a type of which EC2 tells nothing.
func assume() kindLimit {
	return kindLimit{attachments: assumedAttachments, shared: true, assumed: true}
}

// additional counts the interfaces beside the primary one, which every instance has.
func additional(interfaces int) int { return max(interfaces-1, 0) }

// Limit returns how many volumes can be attached to this instance; 0 when EC2 does not know its type's limit.
func (n *node) Limit(ctx context.Context) (_ int64, err error) {
	defer annotate(&err, "attach limit of", n.self.ID)
	m, err := n.machine.Get(ctx)
	if isBarred(err) {
		m, err = n.guess(ctx, err)
	}
	return m.Volumes(), err
}

// isBarred reports whether a node may not ask EC2, or has no credentials, which is not likely to change soon.
func isBarred(err error) bool { return backends.Is(err, backends.Denied) || isOfService(err) }

// look asks EC2 about this instance.
func (n *node) look(ctx context.Context) (limits.Machine, error) {
	instance, err := n.b.instances.Do(ctx, n.self.ID)
	if err != nil {
		return limits.Machine{}, err
	}
	m := limits.Machine{Interfaces: additional(len(instance.NetworkInterfaces)),
		Reserved: n.b.config.ReservedAttachments}
	for _, disk := range instance.BlockDeviceMappings {
		if isForeign(disk) {
			m.ForeignDisks++
		}
	}
	return n.typed(ctx, m, instance.InstanceType, 0)
}

// isForeign reports whether a disk was not attached by the driver. Some of the driver's device names, /dev/sdf to
// /dev/sdp, are also those that AWS recommends for the data disks of an image. But a disk that is deleted with its
// instance is never the driver's, which does not request that.
func isForeign(disk types.InstanceBlockDeviceMapping) bool {
	return !slices.Contains(deviceNames(), aws.ToString(disk.DeviceName)) ||
		disk.Ebs != nil && aws.ToBool(disk.Ebs.DeleteOnTermination)
}

// guess returns what the instance itself knows about its attachments. Of its EBS volumes, it counts only the root disk
// as foreign.
func (n *node) guess(ctx context.Context, because error) (limits.Machine, error) {
	n.tellBarred(because)
	m := limits.Machine{Interfaces: additional(assumedInterfaces), ForeignDisks: rootDisks,
		Reserved: n.b.config.ReservedAttachments}
	if count, err := n.imds.interfaces(ctx); err == nil {
		m.Interfaces = additional(count)
	}
	disks, err := n.disks()
	if err != nil {
		return m, err
	}
	own := 0
	for _, disk := range disks {
		if !strings.HasPrefix(disk.serial, "vol") {
			own++
		}
	}
	if isOfService(because) {
		return n.typed(ctx, m, "", own) // Without credentials, asking again is useless.
	}
	return n.typed(ctx, m, types.InstanceType(n.self.Type), own)
}

// typed sets the limits of the instance's type, which is empty if unknown. own counts the disks that belong to the
// type, as far as they are known. EC2's own number leaves them out.
func (n *node) typed(ctx context.Context, m limits.Machine, kind types.InstanceType, own int) (limits.Machine, error) {
	if m.Attachments = n.b.config.VolumeAttachLimit; m.Attachments > 0 {
		m.ForeignDisks += own
		return m, nil
	}
	known, err := n.kindLimit(ctx, kind)
	if isBarred(err) {
		n.tellBarred(err)
		known, err = assume(), nil
	}
	if known.assumed {
		m.ForeignDisks += own
	}
	m.Attachments, m.SharedWithInterfaces = known.attachments, known.shared
	return m, err
}

// kindLimit asks EC2 for the limit of this instance's type, and keeps a known answer.
func (n *node) kindLimit(ctx context.Context, kind types.InstanceType) (kindLimit, error) {
	if known := n.kind.Load(); known != nil {
		return *known, nil
	}
	if kind == "" {
		return assume(), nil
	}
	out, err := n.b.api.DescribeInstanceTypes(ctx,
		&ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{kind}})
	if err != nil {
		return kindLimit{}, ofEC2(err)
	}
	var known kindLimit
	for _, t := range out.InstanceTypes {
		if t.EbsInfo != nil {
			known = kindLimit{attachments: int(aws.ToInt32(t.EbsInfo.MaximumEbsAttachments)),
				shared: t.EbsInfo.AttachmentLimitType == types.AttachmentLimitTypeShared}
		}
	}
	if known.attachments > 0 {
		n.kind.Store(&known)
	}
	return known, nil
}

// tellBarred logs, once, what is missing and what the node assumes instead.
func (n *node) tellBarred(because error) {
	n.barred.Do(func() {
		n.b.log.Error("this node may not ask EC2 how many volumes can be attached to it: a low number is assumed; "+
			"allow ec2:DescribeInstances and ec2:DescribeInstanceTypes, or set volumeAttachLimit in the configuration",
			"instance", n.self.ID, "reason", failure.OneLine(because).Error())
	})
}
