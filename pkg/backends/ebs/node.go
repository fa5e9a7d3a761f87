package ebs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/limits"
	"github.com/stowage-csi/stowage/pkg/cloud/metadata"
)

// node is the node side. It uses a volume without EC2. It asks EC2 only about its own instance: for the attach limit,
// and for the zone if no nearer source knows it. ec2:DescribeInstances and ec2:DescribeInstanceTypes are enough for
// that.
type node struct {
	b       *backend
	self    metadata.Instance
	imds    service
	machine *limits.Refreshed
	barred  sync.Once // logs once that EC2 does not let the node ask
	kind    atomic.Pointer[kindLimit]
}

// machineAge is how long an answer about this instance is valid. Its network interfaces come and go with pods.
const machineAge = time.Minute

func newNode(b *backend, self metadata.Instance, imds service) *node {
	n := &node{b: b, self: self, imds: imds}
	n.machine = limits.Refresh(machineAge, n.look)
	return n
}

// Source finds the NVMe device whose controller has the volume's ID as its serial number. Kinds: NotFound for a handle
// that no volume can have; Invalid when the attachment lacks the volume's size, which ControllerPublishVolume adds;
// Unsupported for a filesystem on a volume that is a raw device only; Unavailable while no device has the ID, or more
// than one has it.
func (n *node) Source(ctx context.Context, attachment backends.Attachment) (_ backends.Source, err error) {
	defer annotate(&err, "find device of", attachment.Handle)
	if err := ctx.Err(); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "not done, because the request has ended: %w", err)
	}
	if !isID("vol", attachment.Handle) {
		return nil, backends.Errorf(backends.NotFound, "there is no volume %q: handles are such as vol-0123456789abcdef0",
			attachment.Handle)
	}
	// Without the size, nobody has attached the volume for this call: there may be no disk, and waiting for one would be
	// in vain.
	size, err := strconv.ParseInt(attachment.Attributes[sizeAttribute], 10, 64)
	if err != nil || size <= 0 {
		return nil, backends.Errorf(backends.Invalid, "the attachment does not say the volume's size: its attribute %s is %q",
			sizeAttribute, attachment.Attributes[sizeAttribute])
	}
	// An attachment of an older version does not list them.
	if types := attachment.Attributes[typesAttribute]; types != "" {
		if err := (backends.Access{Types: typesIn(types)}).CheckStaged(attachment.Type); err != nil {
			return nil, err
		}
	}
	serial := strings.Replace(attachment.Handle, "-", "", 1)
	device, err := n.device(serial)
	if err != nil {
		return nil, err
	}
	return backends.Device{Path: device, Identity: backends.Identity{SizeBytes: size, Serial: serial}}, nil
}

// device searches the NVMe disks. The links below /dev/disk/by-id, which others use, need udev's rules on the host and
// may be of a disk that is gone. The result is only a hint: the node pipeline verifies the device once it is open. If
// two disks have the serial number, both would pass, so neither is used: one is not the volume, or not any more.
func (n *node) device(serial string) (string, error) {
	disks, err := n.disks()
	if err != nil {
		return "", err
	}
	var found []string
	for _, disk := range disks {
		if disk.serial == serial {
			found = append(found, "/dev/"+disk.name)
		}
	}
	switch len(found) {
	case 0:
		return "", backends.Errorf(backends.Unavailable,
			"no NVMe disk has the serial number %q (yet): is the volume attached to this instance?", serial)
	case 1:
		return found[0], nil
	}
	return "", backends.Errorf(backends.Unavailable,
		"%d NVMe disks have the serial number %q, %s: none is used until only the volume has it",
		len(found), serial, strings.Join(found, " and "))
}

// disk is an NVMe disk as the kernel shows it.
type disk struct{ name, serial string }

func (n *node) disks() (disks []disk, err error) {
	form := regexp.MustCompile(`^nvme[0-9]+n[0-9]+$`)
	entries, err := os.ReadDir(n.b.config.SysBlock)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "looking for block devices: %w", err)
	}
	for _, entry := range entries {
		// A name such as nvme1c1n1 is one of several paths to a disk, and has no device node.
		if !form.MatchString(entry.Name()) {
			continue
		}
		serial, err := os.ReadFile(filepath.Join(n.b.config.SysBlock, entry.Name(), "device", "serial"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, backends.Errorf(backends.Unavailable, "reading the serial number of %s: %w", entry.Name(), err)
		}
		disks = append(disks, disk{entry.Name(), trimmed(serial)})
	}
	return disks, nil
}

// Topology returns this instance's zone.
func (n *node) Topology(ctx context.Context) (_ backends.Topology, err error) {
	defer annotate(&err, "zone of", n.self.ID)
	if n.self.Zone != "" {
		return n.b.place(n.self.Zone), nil
	}
	instance, err := n.b.instances.Do(ctx, n.self.ID)
	if err != nil {
		return nil, err
	}
	if instance.Placement == nil || aws.ToString(instance.Placement.AvailabilityZone) == "" {
		return nil, backends.Errorf(backends.Unavailable, "EC2 does not say in which zone instance %s is", n.self.ID)
	}
	return n.b.place(*instance.Placement.AvailabilityZone), nil
}
