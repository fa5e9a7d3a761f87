package ebs

import (
	"cmp"
	"context"
	"errors"
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
	for {
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
		// The next one is looked for only after this one has ended for good.
		if v, err = b.asOfNow(ctx, v); err == nil {
			err = cmp.Or(b.usable(ctx, v), b.staying(aws.ToString(v.VolumeId)))
		}
		if err == nil {
			return b.view(v), nil
		}
		if !isGone(err) {
			return nil, err
		}
	}
}

// findNamed returns the volume of that name, nil when there is none. Should there be several, which takes two
// controllers or an EC2 that hid one for long, all callers get the oldest one, and the log tells of the others.
func (b *backend) findNamed(ctx context.Context, name string) (*types.Volume, error) {
	found, err := b.named.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	b.clear(ctx, found)
	return b.oldest(name, found), nil
}

func (b *backend) oldest(name string, found []types.Volume) *types.Volume {
	usable := slices.DeleteFunc(slices.Clone(found), isLost)
	if len(usable) == 0 {
		return nil
	}
	slices.SortFunc(usable, func(x, y types.Volume) int {
		return cmp.Or(aws.ToTime(x.CreateTime).Compare(aws.ToTime(y.CreateTime)), cmp.Compare(*x.VolumeId, *y.VolumeId))
	})
	for _, v := range usable[1:] {
		b.log.Warn("a second volume has the same name: it is not used", "name", name, "volume", *v.VolumeId, "used",
			*usable[0].VolumeId)
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

// volume looks at a volume. One look that does not show it proves nothing. Kinds: NotFound, also for a handle of
// another form; those of keeps and of unseen.
func (b *backend) volume(ctx context.Context, handle string) (types.Volume, error) {
	if !isID("vol", handle) {
		return types.Volume{}, noVolume(handle)
	}
	v, err := b.volumes.Look(ctx, handle)
	if !errors.Is(err, errUnseen) {
		return v, err
	}
	if v, ok := b.shown.Last(handle); ok {
		v.Attachments = nil // Where it is attached may have changed; EC2 says so when it is asked to attach it.
		return v, b.keeps(ctx, handle)
	}
	return b.unseen(ctx, handle)
}

func noVolume(handle string) error {
	return backends.Errorf(backends.NotFound, "there is no volume %q: handles are such as vol-0123456789abcdef0", handle)
}

// view is a volume as the contract has it.
func (b *backend) view(v types.Volume) *backends.Volume {
	name, _ := tag(v.Tags, volumeNameTag)
	fingerprint, _ := tag(v.Tags, b.fingerprintTag())
	view := &backends.Volume{
		Handle: aws.ToString(v.VolumeId), Name: tagText(name), Fingerprint: tagText(fingerprint),
		Settings:      b.settingsOf(v.Tags),
		CapacityBytes: int64(aws.ToInt32(v.Size)) * gib,
		Source:        backends.ContentSource{Snapshot: aws.ToString(v.SnapshotId), Volume: aws.ToString(v.SourceVolumeId)},
		Access:        accessOf(aws.ToBool(v.MultiAttachEnabled)).OfRaw(b.raw(v.Tags)),
		Topology:      []backends.Topology{{zoneLabel: aws.ToString(v.AvailabilityZone)}},
	}
	for _, a := range attachmentsOf(v).Attachments {
		view.PublishedNodes = append(view.PublishedNodes, a.Node)
	}
	slices.Sort(view.PublishedNodes)
	return view
}

// Delete removes a volume. Kinds: NotFound; InUse; Denied.
func (b *backend) Delete(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete", handle)
	_, err = b.deleting.Do(ctx, flight.Op{Key: handle, What: "deleting volume " + handle, Join: true},
		func(ctx context.Context) (struct{}, error) {
			return struct{}{}, b.remove(ctx, handle)
		})
	b.lists.volumes.without(handle, err)
	b.lists.unwell.without(handle, err)
	return err
}

// remove sends the request for a deletion, whatever is shown: EC2's answer is the proof. What it does not refuse is
// gone, or going.
func (b *backend) remove(ctx context.Context, handle string) error {
	v, err := b.ours(ctx, handle)
	if err != nil {
		return err
	}
	err = b.askDelete(ctx, handle)
	if backends.Is(err, backends.Unavailable) && !throttled(err) && ctx.Err() == nil {
		err = b.askDelete(ctx, handle) // The answer may have been lost; it does no harm to ask again.
	}
	if backends.Is(err, backends.Busy) || backends.Is(err, backends.Unavailable) {
		if _, look := b.volumes.Look(ctx, handle); isGone(look) {
			err = nil
		}
	}
	if backends.Is(err, backends.InUse) {
		err = backends.Errorf(backends.InUse, "%w: detach it from that instance first", err)
	}
	if err != nil {
		return b.final(handle, err)
	}
	b.forget(v)
	return nil
}

// askDelete sends one request. That there is no such volume any more is no error.
func (b *backend) askDelete(ctx context.Context, handle string) error {
	_, err := flight.Finish(ctx, b.config.Timing.Call, func(ctx context.Context) (*ec2.DeleteVolumeOutput, error) {
		return b.once.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &handle})
	})
	if err = b.orGone(ctx, handle, ofEC2(err)); err == nil {
		b.ended(handle)
	}
	b.unanswered(handle, err)
	return notGone(err)
}

func isGone(err error) bool { return backends.Is(err, backends.NotFound) }

// notGone is the error unless it says NotFound.
func notGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// forget turns the token of a deleted volume's name, which EC2 would answer with the deleted volume. Not while another
// one of the name is being made, maybe with this very token.
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

// zoneLabel is Kubernetes' own label for zones, and all that a volume's topology names: an autoscaler knows it of nodes
// that do not exist yet, and a PersistentVolume's node affinity cannot be changed later. The driver's key is for nodes
// and classes.
const zoneLabel = "topology.kubernetes.io/zone"

// TopologyKeys are the driver's key for a zone and Kubernetes'.
func (b *backend) TopologyKeys() []string {
	return []string{"topology." + b.driver + "/zone", zoneLabel}
}
