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

// node is the node's side. It needs nothing of EC2 to use a volume. It asks EC2 about its own instance only, for which
// ec2:DescribeInstances and ec2:DescribeInstanceTypes are enough: for the attach limit, and for the zone when nobody
// nearer knows it.
type node struct {
	b       *backend
	self    metadata.Instance
	imds    service
	machine *limits.Refreshed
	barred  sync.Once // told that EC2 does not let the node ask
	kind    atomic.Pointer[kindLimit]
}

// machineAge is for how long an answer about this instance holds. Its network interfaces come and go with pods.
const machineAge = time.Minute

func newNode(b *backend, self metadata.Instance, imds service) *node {
	n := &node{b: b, self: self, imds: imds}
	n.machine = limits.Refresh(machineAge, n.look)
	return n
}

// Source finds the NVMe device whose controller has the volume's ID for a serial number. Kinds: NotFound for a handle
// that no volume can have; Invalid when the attachment does not say the volume's size, as ControllerPublishVolume does;
// Unsupported for a filesystem on a volume that is a raw device only; Unavailable while there is no such device, or
// more than one.
func (n *node) Source(ctx context.Context, attachment backends.Attachment) (_ backends.Source, err error) {
	defer annotate(&err, "find device of", attachment.Handle)
	if err := ctx.Err(); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "not done, because the request has ended: %w", err)
	}
	if !isID("vol", attachment.Handle) {
		return nil, backends.Errorf(backends.NotFound, "there is no volume %q: handles are such as vol-0123456789abcdef0",
			attachment.Handle)
	}
	// Without it nobody has attached the volume for this call: there may be no disk, and waiting for one would be in vain.
	size, err := strconv.ParseInt(attachment.Attributes[sizeAttribute], 10, 64)
	if err != nil || size <= 0 {
		return nil, backends.Errorf(backends.Invalid, "the attachment does not say the volume's size: its attribute %s is %q",
			sizeAttribute, attachment.Attributes[sizeAttribute])
	}
	// What an older version has attached says nothing of it.
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

// device looks through the NVMe disks. The links below /dev/disk/by-id, which others use, need udev's rules in the host
// and may be of a disk that is gone. What is found is a hint all the same: the node pipeline proves it once it is open.
// Of two disks with the serial number that proof holds for either, so that neither is taken: one is not the volume, or
// not any more.
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
		// A name such as nvme1c1n1 is one of several paths to a disk, which has no device node.
		if !form.MatchString(entry.Name()) {
			continue
		}
		serial, err := os.ReadFile(filepath.Join(n.b.config.SysBlock, entry.Name(), "device", "serial"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, backends.Errorf(backends.Unavailable, "reading the serial number of %s: %w", entry.Name(), err)
		}
		disks = append(disks, disk{entry.Name(), strings.Trim(string(serial), " \n\x00")})
	}
	return disks, nil
}

// Topology is this instance's zone.
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
