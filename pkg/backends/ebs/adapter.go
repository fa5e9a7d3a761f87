package ebs

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/attach"
)

// adapter implements attach.Cloud for EC2.
type adapter struct{ b *backend }

// attachmentsOf returns how a volume is attached.
func attachmentsOf(v types.Volume) attach.Volume {
	view := attach.Volume{Shared: aws.ToBool(v.MultiAttachEnabled)}
	for _, a := range v.Attachments {
		state := attach.Detaching // busy: the instance does not release the volume
		switch a.State {
		case types.VolumeAttachmentStateDetached:
			continue
		case types.VolumeAttachmentStateAttaching:
			state = attach.Attaching
		case types.VolumeAttachmentStateAttached:
			state = attach.Attached
		default:
		}
		view.Attachments = append(view.Attachments, attach.Attachment{Node: aws.ToString(a.InstanceId),
			Name: aws.ToString(a.Device), State: state, ID: idOf(a.AttachTime), Began: aws.ToTime(a.AttachTime)})
	}
	return view
}

// idOf returns the time when an attachment began as its ID, which tells attachments of a volume to an instance apart.
// It must not be used for calculations, because it is from EC2's clock.
func idOf(began *time.Time) string {
	if began == nil {
		return ""
	}
	return began.UTC().Format(time.RFC3339Nano)
}

// Look returns a volume's attachments.
func (a adapter) Look(ctx context.Context, volume string) (attach.Volume, error) {
	v, err := a.b.volume(ctx, volume)
	return attachmentsOf(v), err
}

// now returns a volume's attachments at an instant after the call began.
func (a adapter) now(ctx context.Context, volume string) (attach.Volume, error) {
	v, err := a.b.probe(ctx, volume)
	return attachmentsOf(v), err
}

// Wait polls a volume's attachments.
func (a adapter) Wait(ctx context.Context, transition, volume string,
	until func(attach.Volume, error) (bool, error)) (attach.Volume, error) {
	v, err := a.b.volumes.Until(ctx, transition, volume,
		func(v types.Volume, err error) (bool, error) { return until(attachmentsOf(v), err) })
	return attachmentsOf(v), err
}

// Attach requests an attachment. Kinds: also those of ours.
func (a adapter) Attach(ctx context.Context, volume, node, name string) (began time.Time, err error) {
	if err := a.ours(ctx, volume); err != nil {
		return began, err
	}
	out, err := a.b.once.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: &volume, InstanceId: &node, Device: &name})
	if codeOf(err) == "InvalidParameterValue" && mentions(err, name) {
		// EC2 has this code for any value that it does not accept, and names the value. The message only decides whether
		// another device name is worth a try: without one, the code decides, and the next call takes another name anyway.
		return began, backends.Errorf(backends.Invalid, "device name %s on %s: %w: %w", name, node, attach.ErrNameTaken,
			ofEC2(err))
	}
	if err != nil {
		return began, a.refusal(ctx, volume, err)
	}
	return aws.ToTime(out.AttachTime), nil
}

// ours fails if the volume has become another cluster's while the call waited. Kinds: Denied; NotFound; Busy when that
// is not known. Unavailable would mean that a request was sent.
func (a adapter) ours(ctx context.Context, volume string) error {
	_, err := a.b.ours(ctx, volume)
	if backends.Is(err, backends.Unavailable) {
		return backends.Errorf(backends.Busy, "whose volume %s is now is not known: ask again: %w", volume, err)
	}
	return err
}

// refusal returns the error of a failed request that changes something. EC2 does not carry out a request that it
// refused, for its rate or with a code that the driver does not know. Unavailable would mean that it may.
func (a adapter) refusal(ctx context.Context, volume string, err error) error {
	known := ofEC2(err)
	switch {
	case throttled(err):
		return backends.Errorf(backends.Busy, "EC2 was asked too often: ask again: %w", known)
	case backends.Is(known, backends.Unavailable) && !mayArrive(known):
		return backends.Errorf(backends.Busy, "EC2 refuses the request: ask again: %w", known)
	}
	return a.b.orGone(ctx, volume, known)
}

// noInstance is EC2's code for an instance that is gone, or not known everywhere yet.
const noInstance = "InvalidInstanceID.NotFound"

// Detach requests the end of an attachment, or of any attachment if the node is empty. A volume that is not in use is
// attached nowhere ("Error codes for the Amazon EC2 API", IncorrectState). Kinds: also those of ours.
func (a adapter) Detach(ctx context.Context, volume, node string) (age time.Duration, err error) {
	if err := a.ours(ctx, volume); err != nil {
		return 0, err
	}
	out, err := a.b.once.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: &volume, InstanceId: text(node)})
	switch codeOf(err) {
	case "IncorrectState", "InvalidAttachment.NotFound":
		return 0, backends.Errorf(backends.Busy, "%w: %w", attach.ErrNotAttached, ofEC2(err))
	case "InvalidParameterCombination": // The volume is attached to several instances, which EC2 does not show yet.
		return 0, backends.Errorf(backends.Busy, "EC2 does not show yet where the volume is attached: ask again: %w",
			ofEC2(err))
	}
	if err = ofEC2(err); backends.Is(err, backends.Denied) || codeOf(err) == noInstance {
		return 0, a.unknown(ctx, volume, node, err)
	}
	if err != nil {
		return 0, a.refusal(ctx, volume, err)
	}
	age, _ = ageOf(out.AttachTime, out.ResultMetadata)
	return age, nil
}

// unknown decides what it means if EC2 refuses to detach without saying whether the attachment exists. An instance that
// EC2 denies is gone and has no volumes, or was just started. A policy that goes by tags forbids the request for an
// instance that has lost its tags. So unknown asks how the volume is attached now. Kinds: Busy with ErrNotAttached when
// it is not; Busy when EC2 has not said so, or denies an instance that has it; NotFound for the volume; Denied.
func (a adapter) unknown(ctx context.Context, volume, node string, refusal error) error {
	v, err := a.now(ctx, volume)
	switch unasked := backends.Is(err, backends.Unsupported); {
	case isGone(err):
		return err
	case err != nil && !unasked:
		return backends.Errorf(backends.Busy, "EC2 has not said where volume %s is attached: ask again: %w", volume, err)
	case err == nil && !v.Has(node), unasked && codeOf(refusal) == noInstance:
		return backends.Errorf(backends.Busy, "%w: %w", attach.ErrNotAttached, refusal)
	case codeOf(refusal) == noInstance:
		return backends.Errorf(backends.Busy, "instance %s has volume %s and is not known everywhere yet: ask again: %w",
			node, volume, refusal)
	}
	return refusal
}

// Taken lists the device names of an instance's disks.
func (a adapter) Taken(ctx context.Context, node string) ([]string, error) {
	instance, err := a.b.instances.Do(ctx, node)
	if err != nil {
		return nil, err
	}
	var taken []string
	for _, m := range instance.BlockDeviceMappings {
		taken = append(taken, aws.ToString(m.DeviceName))
	}
	return taken, nil
}
