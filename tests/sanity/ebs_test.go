package sanity

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// ebsSetup returns the ebs backend over the strict API of package ec2, with images as the instance's disks.
func ebsSetup(t testing.TB, access string) setup {
	config := region.Quick()
	config.Zones = config.Zones[:1] // csi-sanity attaches volumes without requesting a zone.
	r := region.New(t, config, 0)
	definition := ebs.Definition()
	open := definition.Open
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		r.Configure(&o)
		timing := &o.Config.(*ebs.Config).Timing
		// The cloud answers always, and csi-sanity calls once only: a request that is given up would fail it.
		timing.Call, timing.Read = 2*time.Minute, 2*time.Minute
		timing.Settle = 2 * time.Second // A refusal takes twice that: see refusals.go.
		instance, err := open(ctx, o)
		if err == nil {
			instance.Node = &diskless{instance.Node.(instanceNode), r, t.TempDir()}
		}
		return instance, err
	}
	s := setup{name: "ebs " + access, definition: &definition, backend: "ebs", access: access, nodeID: region.NodeA,
		mutable: map[string]string{"throughput": "200"}}
	if access == "mount" { // A mounted ext4 grows only with CAP_SYS_RESOURCE, which not every machine grants.
		s.parameters = map[string]string{"csi.storage.k8s.io/fstype": "xfs"}
	}
	return s
}

// instanceNode is the interface that the backend implements on a node.
type instanceNode interface {
	backends.NodeBackend
	backends.Limiter
	backends.Locator
}

// diskless is a node whose kernel has no disks: an image replaces each disk that the backend finds.
type diskless struct {
	instanceNode
	region *region.Region
	images string
}

// Source returns the image of a volume whose disk the backend finds, with the volume's size.
func (d *diskless) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := d.instanceNode.Source(ctx, attachment)
	if err != nil {
		return nil, err
	}
	disk, _ := source.(backends.Device) // the type that package ebs returns
	path := filepath.Join(d.images, attachment.Handle)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	for _, v := range d.region.Server.Volumes() {
		if v.ID == attachment.Handle {
			err = file.Truncate(int64(v.GiB) << 30)
		}
	}
	return backends.Device{Path: path, Image: true, Identity: backends.Identity{SizeBytes: disk.Identity.SizeBytes}},
		errors.Join(err, file.Close())
}
