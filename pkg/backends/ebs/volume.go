package ebs

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

// Find returns the volume of that name. Kinds: NotFound; Busy while it is being made.
func (b *backend) Find(ctx context.Context, spec backends.Spec) (_ *backends.Volume, err error) {
	name := spec.Name
	defer annotate(&err, "find", name)
	if what, busy := b.making.Under(name); busy {
		return nil, backends.Errorf(backends.Busy, "%s is under way: ask again", what)
	}
	found, err := b.findNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, backends.Errorf(backends.NotFound, "there is no volume named %q", name)
	}
	v, err := b.made(ctx, name, *found)
	if err != nil {
		return nil, err
	}
	return b.view(v), nil
}

// findNamed returns the volume of that name, nil when there is none. Should there be several, which takes two controllers or
// an EC2 that hid one for long, all callers get the oldest one, and the log tells of the others.
func (b *backend) findNamed(ctx context.Context, name string) (*types.Volume, error) {
	found, err := b.named.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	return b.oldest(name, found), nil
}

func (b *backend) oldest(name string, found []types.Volume) *types.Volume {
	usable := slices.DeleteFunc(slices.Clone(found), func(v types.Volume) bool { return v.State == types.VolumeStateError && len(v.Attachments) == 0 })
	if len(usable) == 0 {
		return nil
	}
	slices.SortFunc(usable, func(x, y types.Volume) int {
		return cmp.Or(aws.ToTime(x.CreateTime).Compare(aws.ToTime(y.CreateTime)), cmp.Compare(*x.VolumeId, *y.VolumeId))
	})
	for _, v := range usable[1:] {
		b.log.Warn("a second volume has the same name: it is not used", "name", name, "volume", *v.VolumeId, "used", *usable[0].VolumeId)
	}
	return &usable[0]
}

// Get returns the volume with the handle. Kinds: NotFound.
func (b *backend) Get(ctx context.Context, handle string) (_ *backends.Volume, err error) {
	defer annotate(&err, "get", handle)
	v, err := b.volume(ctx, handle)
	if err != nil {
		return nil, err
	}
	return b.view(v), nil
}

// volume looks at a volume. Kinds: NotFound, also for a handle of another form.
func (b *backend) volume(ctx context.Context, handle string) (types.Volume, error) {
	if !isID("vol", handle) {
		return types.Volume{}, backends.Errorf(backends.NotFound, "there is no volume %q: handles are such as vol-0123456789abcdef0", handle)
	}
	return b.volumes.Look(ctx, handle)
}

// view is a volume as the contract has it.
func (b *backend) view(v types.Volume) *backends.Volume {
	name, _ := tag(v.Tags, volumeNameTag)
	fingerprint, _ := tag(v.Tags, b.fingerprintTag())
	view := &backends.Volume{
		Handle: aws.ToString(v.VolumeId), Name: tagText(name), Fingerprint: tagText(fingerprint),
		CapacityBytes: int64(aws.ToInt32(v.Size)) * gib,
		Source:        backends.ContentSource{Snapshot: aws.ToString(v.SnapshotId), Volume: aws.ToString(v.SourceVolumeId)},
		Access:        accessOf(aws.ToBool(v.MultiAttachEnabled)),
		Topology:      []backends.Topology{b.place(aws.ToString(v.AvailabilityZone))},
	}
	for _, a := range attachmentsOf(v).Attachments {
		view.PublishedNodes = append(view.PublishedNodes, a.Node)
	}
	slices.Sort(view.PublishedNodes)
	return view
}

// accessOf is how a volume can be used. On several nodes at a time it is a raw device only: no filesystem here bears two
// kernels.
func accessOf(multi bool) backends.Access {
	access := backends.Access{Types: []backends.AccessType{backends.Mount, backends.Block}, Modes: backends.SingleNodeModes()}
	if multi {
		access.Types = []backends.AccessType{backends.Block}
		access.Modes = append(access.Modes, sharedModes()...)
	}
	return access
}

func sharedModes() []backends.AccessMode {
	return []backends.AccessMode{backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter, backends.MultiNodeMultiWriter}
}

// shared tells whether any of the modes is for several nodes.
func shared(modes []backends.AccessMode) bool {
	return slices.ContainsFunc(sharedModes(), func(m backends.AccessMode) bool { return slices.Contains(modes, m) })
}

// Delete removes a volume. Kinds: NotFound; InUse.
func (b *backend) Delete(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete", handle)
	_, err = b.deleting.Do(ctx, flight.Op{Key: handle, What: "deleting volume " + handle, Join: true}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.remove(ctx, handle)
	})
	return err
}

func (b *backend) remove(ctx context.Context, handle string) error {
	v, err := b.volume(ctx, handle)
	if err != nil {
		return err
	}
	if published := b.view(v).PublishedNodes; len(published) > 0 {
		return backends.Errorf(backends.InUse, "the volume is attached to %q: detach it first", published)
	}
	_, err = flight.Finish(ctx, b.config.Timing.Call, func(ctx context.Context) (*ec2.DeleteVolumeOutput, error) {
		return b.once.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &handle})
	})
	if err = failure(err); err != nil && !b.goes(ctx, handle, err) {
		return err
	}
	_, err = b.volumes.Until(ctx, "delete", handle, func(_ types.Volume, err error) (bool, error) { return isGone(err), notGone(err) })
	if err != nil {
		return err
	}
	b.forget(v)
	return nil
}

// goes tells whether a volume is on its way out although deleting it failed: an answer that was lost, or a request that came
// twice.
func (b *backend) goes(ctx context.Context, handle string, failed error) bool {
	switch backends.KindOf(failed) {
	case backends.NotFound:
		return true
	case backends.Busy, backends.Unavailable:
		_, err := b.volumes.Look(ctx, handle)
		return isGone(err)
	default:
		return false
	}
}

func isGone(err error) bool { return backends.Is(err, backends.NotFound) }

// notGone is the error unless it says NotFound.
func notGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// forget turns the token of a deleted volume's name, which EC2 would answer with the deleted volume. Not while another one of
// the name is being made, maybe with this very token.
func (b *backend) forget(v types.Volume) {
	value, ok := tag(v.Tags, volumeNameTag)
	name := tagText(value)
	if _, busy := b.making.Under(name); ok && !busy {
		b.tokens.Turn(name, b.tokens.Of(name))
	}
}

// place is where a zone is, in the keys of TopologyKeys.
func (b *backend) place(zone string) backends.Topology {
	place := backends.Topology{}
	for _, key := range b.TopologyKeys() {
		place[key] = zone
	}
	return place
}

// zoneLabel is Kubernetes' own label for zones. A volume has it beside the driver's key, so that it can be used wherever only
// one of them is known.
const zoneLabel = "topology.kubernetes.io/zone"

// TopologyKeys are the driver's key for a zone and Kubernetes'.
func (b *backend) TopologyKeys() []string {
	return []string{"topology." + b.driver + "/zone", zoneLabel}
}
