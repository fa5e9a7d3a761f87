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

// Find returns the volume of that name. Kinds: NotFound; Busy while it is being created.
func (b *backend) Find(ctx context.Context, spec backends.Spec) (_ *backends.Volume, err error) {
	name := spec.Name
	defer annotate(&err, "find", name)
	if what, busy := b.making.Under(name); busy {
		return nil, backends.Errorf(backends.Busy, "%s is under way: ask again", what)
	}
	for {
		found, _, err := b.findNamed(ctx, name)
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
		// The next volume is looked for only after this one has certainly ended.
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

// findNamed returns the volume of that name, or nil when there is none. Several exist only because of two controllers,
// or because EC2 hid one for long. All callers get the oldest one then, and the log names the others. shown reports
// whether EC2 shows any, even a failed one, which may be left.
func (b *backend) findNamed(ctx context.Context, name string) (_ *types.Volume, shown bool, err error) {
	found, err := b.named.Look(ctx, name)
	if err != nil {
		return nil, false, err
	}
	b.clear(ctx, found)
	return b.oldest(name, found), len(found) > 0, nil
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
// another form; those of keeps and of shows.
func (b *backend) volume(ctx context.Context, handle string) (types.Volume, error) {
	if !isID("vol", handle) {
		return types.Volume{}, noVolume(handle)
	}
	v, err := b.volumes.Look(ctx, handle)
	if !errors.Is(err, errUnseen) {
		return v, b.proven(ctx, handle, err)
	}
	if v, ok := b.shown.Last(handle); ok {
		v.Attachments = nil // The attachments may have changed. EC2 decides when it is asked to attach.
		return v, b.keeps(ctx, handle)
	}
	return b.shows(ctx, handle)
}

func noVolume(handle string) error {
	return backends.Errorf(backends.NotFound, "there is no volume %q: handles are such as vol-0123456789abcdef0", handle)
}

// view returns a volume in the contract's form.
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

// remove requests a deletion regardless of what reads show: EC2's answer is the proof. Unless EC2 refuses, the volume
// is gone or going.
func (b *backend) remove(ctx context.Context, handle string) error {
	v, err := b.ours(ctx, handle)
	if err != nil {
		return err
	}
	err = b.askDelete(ctx, handle)
	if mayArrive(err) && ctx.Err() == nil {
		// The answer may have been lost. Repeating the request does no harm while the volume is this cluster's.
		if _, err = b.ours(ctx, handle); err == nil {
			err = b.askDelete(ctx, handle)
		}
		err = notGone(err)
	}
	if backends.Is(err, backends.Busy) || backends.Is(err, backends.Unavailable) {
		if _, look := b.volumes.Look(ctx, handle); isGone(look) && b.shown.Ended(handle) {
			err = nil // A read shows that it is being deleted. One that does not show it proves nothing.
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

// askDelete sends one request. It succeeds if the volume does not exist.
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

// notGone returns the error unless it is NotFound.
func notGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// forget turns the token of a deleted volume's name, because EC2 would answer that token with the deleted volume. It
// does nothing while another volume of the name is being created, maybe with this very token.
func (b *backend) forget(v types.Volume) {
	value, ok := tag(v.Tags, volumeNameTag)
	name := tagText(value)
	if _, busy := b.making.Under(name); ok && !busy {
		b.tokens.Turn(name, b.tokens.Of(name))
	}
}

// place returns a zone as a topology with the keys of TopologyKeys.
func (b *backend) place(zone string) backends.Topology {
	place := backends.Topology{}
	for _, key := range b.TopologyKeys() {
		place[key] = zone
	}
	return place
}

// zoneLabel is Kubernetes' own label for zones, and the only key in a volume's topology: an autoscaler knows it for
// nodes that do not exist yet, and a PersistentVolume's node affinity cannot be changed later. The driver's own key is
// for nodes and classes.
const zoneLabel = "topology.kubernetes.io/zone"

// TopologyKeys returns the driver's key for a zone and Kubernetes'.
func (b *backend) TopologyKeys() []string {
	return []string{"topology." + b.driver + "/zone", zoneLabel}
}
