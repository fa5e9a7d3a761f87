package ebs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/limits"
)

// node is the node's side. It asks EC2 about its own instance only, for which ec2:DescribeInstances and
// ec2:DescribeInstanceTypes are enough, and needs nothing of EC2 to use a volume.
type node struct {
	b       *backend
	id      string
	machine *limits.Refreshed
}

// machineAge is for how long an answer about this instance holds. Its network interfaces come and go with pods.
const machineAge = time.Minute

func newNode(b *backend, id string) *node {
	n := &node{b: b, id: id}
	n.machine = limits.Refresh(machineAge, n.look)
	return n
}

// Source finds the NVMe device whose controller has the volume's ID for a serial number. Kinds: NotFound for a handle that no
// volume can have; Invalid when the attachment does not say the volume's size, as ControllerPublishVolume does; Unavailable while
// there is no such device.
func (n *node) Source(ctx context.Context, attachment backends.Attachment) (_ backends.Source, err error) {
	defer annotate(&err, "find device of", attachment.Handle)
	if err := ctx.Err(); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "not done, because the request has ended: %w", err)
	}
	if !isID("vol", attachment.Handle) {
		return nil, backends.Errorf(backends.NotFound, "there is no volume %q: handles are such as vol-0123456789abcdef0", attachment.Handle)
	}
	// Without it nobody has attached the volume for this call: there may be no disk, and waiting for one would be in vain.
	size, err := strconv.ParseInt(attachment.Attributes[sizeAttribute], 10, 64)
	if err != nil || size <= 0 {
		return nil, backends.Errorf(backends.Invalid, "the attachment does not say the volume's size: its attribute %s is %q", sizeAttribute, attachment.Attributes[sizeAttribute])
	}
	serial := strings.Replace(attachment.Handle, "-", "", 1)
	device, err := n.device(serial)
	if err != nil {
		return nil, err
	}
	return backends.Device{Path: device, Identity: backends.Identity{SizeBytes: size, Serial: serial}}, nil
}

// device looks through the NVMe disks. The links below /dev/disk/by-id, which others use, need udev's rules in the host and
// may be of a disk that is gone. What is found is a hint all the same: the node pipeline proves it once it is open.
func (n *node) device(serial string) (string, error) {
	disk := regexp.MustCompile(`^nvme[0-9]+n[0-9]+$`)
	entries, err := os.ReadDir(n.b.config.SysBlock)
	if err != nil {
		return "", backends.Errorf(backends.Unavailable, "looking for block devices: %w", err)
	}
	for _, entry := range entries {
		// A name such as nvme1c1n1 is one of several paths to a disk, which has no device node.
		if !disk.MatchString(entry.Name()) {
			continue
		}
		have, err := os.ReadFile(filepath.Join(n.b.config.SysBlock, entry.Name(), "device", "serial"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", backends.Errorf(backends.Unavailable, "reading the serial number of %s: %w", entry.Name(), err)
		}
		if strings.Trim(string(have), " \n\x00") == serial {
			return "/dev/" + entry.Name(), nil
		}
	}
	return "", backends.Errorf(backends.Unavailable, "no NVMe disk has the serial number %q (yet): is the volume attached to this instance?", serial)
}

// Limit is how many volumes can be attached to this instance; 0 when EC2 does not know its type's limit.
func (n *node) Limit(ctx context.Context) (_ int64, err error) {
	defer annotate(&err, "attach limit of", n.id)
	m, err := n.machine.Get(ctx)
	return m.Volumes(), err
}

// Topology is this instance's zone.
func (n *node) Topology(ctx context.Context) (_ backends.Topology, err error) {
	defer annotate(&err, "zone of", n.id)
	instance, err := n.b.instances.Do(ctx, n.id)
	if err != nil {
		return nil, err
	}
	if instance.Placement == nil || aws.ToString(instance.Placement.AvailabilityZone) == "" {
		return nil, backends.Errorf(backends.Unavailable, "EC2 does not say in which zone instance %s is", n.id)
	}
	return n.b.place(*instance.Placement.AvailabilityZone), nil
}

// look asks EC2 about this instance.
func (n *node) look(ctx context.Context) (limits.Machine, error) {
	instance, err := n.b.instances.Do(ctx, n.id)
	if err != nil {
		return limits.Machine{}, err
	}
	m := limits.Machine{Interfaces: len(instance.NetworkInterfaces), Reserved: n.b.config.ReservedAttachments}
	ours := deviceNames()
	for _, disk := range instance.BlockDeviceMappings {
		if !slices.Contains(ours, aws.ToString(disk.DeviceName)) {
			m.ForeignDisks++
		}
	}
	if m.Attachments = n.b.config.VolumeAttachLimit; m.Attachments > 0 {
		return m, nil
	}
	return n.typed(ctx, m, instance.InstanceType)
}

// typed fills in what the instance's type allows.
func (n *node) typed(ctx context.Context, m limits.Machine, kind types.InstanceType) (limits.Machine, error) {
	out, err := n.b.api.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{kind}})
	if err != nil {
		return m, failure(err)
	}
	for _, t := range out.InstanceTypes {
		if t.EbsInfo != nil {
			m.Attachments = int(aws.ToInt32(t.EbsInfo.MaximumEbsAttachments))
			m.SharedWithInterfaces = t.EbsInfo.AttachmentLimitType == types.AttachmentLimitTypeShared
		}
	}
	return m, nil
}
