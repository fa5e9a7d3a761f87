package ebs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/attach"
)

// adapter shows EC2 to pkg/cloud/attach.
type adapter struct{ b *backend }

// attachmentsOf is how a volume is attached.
func attachmentsOf(v types.Volume) attach.Volume {
	view := attach.Volume{Shared: aws.ToBool(v.MultiAttachEnabled)}
	for _, a := range v.Attachments {
		state := attach.Detaching // busy is one that the instance does not let go of
		switch a.State {
		case types.VolumeAttachmentStateDetached:
			continue
		case types.VolumeAttachmentStateAttaching:
			state = attach.Attaching
		case types.VolumeAttachmentStateAttached:
			state = attach.Attached
		default:
		}
		view.Attachments = append(view.Attachments, attach.Attachment{Node: aws.ToString(a.InstanceId), Name: aws.ToString(a.Device), State: state})
	}
	return view
}

// Look shows a volume's attachments.
func (a adapter) Look(ctx context.Context, volume string) (attach.Volume, error) {
	v, err := a.b.volume(ctx, volume)
	return attachmentsOf(v), err
}

// Wait looks from time to time.
func (a adapter) Wait(ctx context.Context, transition, volume string, until func(attach.Volume, error) (bool, error)) (attach.Volume, error) {
	v, err := a.b.volumes.Until(ctx, transition, volume, func(v types.Volume, err error) (bool, error) { return until(attachmentsOf(v), err) })
	return attachmentsOf(v), err
}

// Attach asks for an attachment.
func (a adapter) Attach(ctx context.Context, volume, node, name string) error {
	_, err := a.b.once.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: &volume, InstanceId: &node, Device: &name})
	if codeOf(err) == "InvalidParameterValue" {
		// The IDs are of the right form, or EC2 would have said so in codes of their own: what is left is the device.
		return backends.Errorf(backends.Invalid, "device name %s on %s: %w: %w", name, node, attach.ErrNameTaken, failure(err))
	}
	return failure(err)
}

// Detach asks for the end of an attachment. That there is none is no failure, and neither that the instance is gone.
func (a adapter) Detach(ctx context.Context, volume, node string) error {
	_, err := a.b.once.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: &volume, InstanceId: &node})
	switch codeOf(err) {
	case "IncorrectState", "InvalidAttachment.NotFound", "InvalidInstanceID.NotFound":
		return nil
	}
	return failure(err)
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
