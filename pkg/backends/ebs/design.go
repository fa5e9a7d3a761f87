package ebs

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// defaultSize in bytes is that of aws-ebs-csi-driver.
const defaultSize = 100 * gib

// origin is the source of a volume's data; the zero value for none.
type origin struct {
	snapshot, volume string
	bytes            int64
	raw              bool   // created as a raw device
	zone             string // where the volume must be; empty for anywhere
}

// design has all properties of a volume to create.
type design struct {
	shape
	origin
	zone      string
	encrypted *bool
	key       string
	multi     bool
	tags      map[string]string
}

// design checks the spec and derives the design. The same spec gives the same design, also after a restart.
func (b *backend) design(ctx context.Context, spec backends.Spec, from origin) (design, error) {
	p, err := parametersOf(spec.Parameters)
	if err != nil {
		return design{}, err
	}
	m, err := backends.Given[Mutable](spec.Mutable)
	if err != nil {
		return design{}, err
	}
	d := design{origin: from, encrypted: p.encryption(), key: p.KMSKeyID, multi: shared(spec.Access.Modes)}
	if err := checkAccess(accessOf(d.multi), spec.Access); err != nil {
		return design{}, err
	}
	if err := spec.CheckMode(from.raw); err != nil {
		return design{}, err
	}
	preferred := int64(defaultSize)
	if from.bytes > 0 {
		preferred = from.bytes
	}
	if d.shape, err = shapeFor(p, m, spec.Capacity, preferred, max(from.bytes, spec.LeastDeviceBytes)); err != nil {
		return design{}, err
	}
	if d.multi && !slices.Contains([]string{typeIO1, typeIO2}, d.kind) {
		return design{}, backends.Errorf(backends.Invalid,
			"volumes of type %s are for one node at a time: use io2 for access modes of several nodes", d.kind)
	}
	if d.tags, err = b.tagsFor(volumeNameTag, spec.Name, p.Tags, spec.Claim); err != nil {
		return design{}, err
	}
	d.tags[b.fingerprintTag()] = tagValue(spec.Fingerprint)
	if spec.Raw() {
		d.tags[b.rawTag()] = "true"
	}
	for key, value := range spec.Settings {
		d.tags[b.settingPrefix()+key] = tagValue(value)
	}
	if err := b.countTags(d.tags, mostVolumeTags); err != nil {
		return design{}, err
	}
	d.zone, err = b.zoneFor(ctx, spec, from)
	return d, err
}

func (b *backend) zoneFor(ctx context.Context, spec backends.Spec, from origin) (string, error) {
	if from.zone == "" {
		return b.zone(ctx, spec.Name, spec.Topology)
	}
	if !spec.Topology.Allows(b.place(from.zone)) {
		return "", backends.Errorf(backends.Exhausted,
			"a clone is in its source's zone, %s, which the topology %v does not allow", from.zone, spec.Topology.Requisite)
	}
	return from.zone, nil
}

// ask sends the request for the volume. Requests with the same token create one volume.
func (b *backend) ask(ctx context.Context, d design, token string) (reply, error) {
	if d.volume != "" {
		return b.askCopy(ctx, d, token)
	}
	out, err := b.once.CreateVolume(ctx, &ec2.CreateVolumeInput{
		AvailabilityZone: &d.zone, ClientToken: &token, Size: number(d.gib), VolumeType: types.VolumeType(d.kind),
		Iops: number(d.iops), Throughput: number(d.throughput),
		Encrypted: d.encrypted, KmsKeyId: text(d.key), SnapshotId: text(d.snapshot), MultiAttachEnabled: flag(d.multi),
		TagSpecifications: specification(types.ResourceTypeVolume, d.tags),
	})
	if err != nil {
		return reply{}, b.orSourceGone(ctx, d.snapshot, ofEC2(err))
	}
	return b.replyOf(types.Volume{VolumeId: out.VolumeId, CreateTime: out.CreateTime, State: out.State},
		out.ResultMetadata), nil
}

func (b *backend) askCopy(ctx context.Context, d design, token string) (reply, error) {
	out, err := b.once.CopyVolumes(ctx, &ec2.CopyVolumesInput{
		SourceVolumeId: &d.volume, ClientToken: &token, Size: number(d.gib), VolumeType: types.VolumeType(d.kind),
		Iops: number(d.iops), Throughput: number(d.throughput),
		Encrypted: d.encrypted, KmsKeyId: text(d.key), MultiAttachEnabled: flag(d.multi),
		TagSpecifications: specification(types.ResourceTypeVolume, d.tags),
	})
	if err != nil {
		return reply{}, b.orSourceGone(ctx, d.volume, ofEC2(err))
	}
	if len(out.Volumes) != 1 {
		return reply{}, backends.Errorf(backends.Unavailable, "EC2 answered with %d volumes for one copy", len(out.Volumes))
	}
	return b.replyOf(out.Volumes[0], out.ResultMetadata), nil
}

// orSourceGone is orGone for the source of a volume, if it has one.
func (b *backend) orSourceGone(ctx context.Context, id string, err error) error {
	if id == "" {
		return err
	}
	return b.orGone(ctx, id, err)
}

// number, text and flag return nil for a zero value, so that a request omits it.
func number(n int64) *int32 {
	if n == 0 {
		return nil
	}
	return aws.Int32(int32(n))
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func flag(set bool) *bool {
	if !set {
		return nil
	}
	return &set
}
