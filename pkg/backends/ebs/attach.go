package ebs

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/attach"
)

const (
	// sizeAttribute is the volume's size in bytes when it was attached, for the node to compare the device with.
	sizeAttribute = "sizeBytes"
	// typesAttribute has what the volume can be used as. Kubernetes attaches once for all PersistentVolumes that name it,
	// so that the node may be asked to mount what was attached as a raw device.
	typesAttribute = "accessTypes"
)

// Attach attaches a volume to an instance. Kinds: those of backends.Attacher.
func (b *backend) Attach(ctx context.Context, request backends.AttachRequest) (_ map[string]string, err error) {
	defer annotate(&err, "attach", request.Handle)
	if !isID("i", request.Node) {
		return nil, backends.Errorf(backends.NotFound, "there is no instance %q: node IDs are such as i-0123456789abcdef0",
			request.Node)
	}
	v, err := b.ownVolume(ctx, request.Handle)
	if err != nil {
		return nil, err
	}
	view := b.view(v)
	if err := view.Access.Check(request.Access); err != nil {
		return nil, err
	}
	if err := b.mark(ctx, v, request); err != nil {
		return nil, err
	}
	seen := attachmentsOf(v)
	_, err = b.attach.Attach(ctx, attach.Request{Volume: request.Handle, Node: request.Node,
		Shared: shared(request.Access.Modes), Seen: &seen})
	if err != nil {
		return nil, err
	}
	return map[string]string{
		sizeAttribute: strconv.FormatInt(view.CapacityBytes, 10), typesAttribute: textOf(view.Access.Types),
	}, nil
}

// textOf is how types stand in typesAttribute, and typesIn what a text there says.
func textOf(types []backends.AccessType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = string(t)
	}
	return strings.Join(texts, ",")
}

func typesIn(text string) (types []backends.AccessType) {
	for part := range strings.SplitSeq(text, ",") {
		types = append(types, backends.AccessType(part))
	}
	return types
}

// mark takes care that the volume's tags tell whether it is attached read-only, before it is. Kinds: Exists when it is
// attached to the node in the other way.
func (b *backend) mark(ctx context.Context, v types.Volume, request backends.AttachRequest) error {
	_, marked := tag(v.Tags, b.readOnlyTag(request.Node))
	here := slices.ContainsFunc(b.attach.Current(request.Handle, attachmentsOf(v)).Attachments,
		func(a attach.Attachment) bool { return a.Node == request.Node && a.State != attach.Detaching })
	switch {
	case here && marked != request.ReadOnly:
		return backends.Errorf(backends.Exists, "the volume is attached to node %q with read-only %t: detach it first",
			request.Node, marked)
	case here, !marked && !request.ReadOnly:
		return nil
	case !request.ReadOnly:
		return b.unmark(ctx, v, request.Node)
	}
	// One that is shown may be gone by now: EC2 shows late what was taken away.
	// No two marks are the same: a request to take away an earlier one that arrives late must not take this one.
	mark := time.Now().UTC().Format(time.RFC3339Nano)
	return b.finish(ctx, &b.tagging, request.Handle+" "+request.Node, "marking it read-only",
		func(ctx context.Context) error {
			_, err := b.once.CreateTags(ctx, &ec2.CreateTagsInput{
				Resources: []string{request.Handle},
				Tags:      []types.Tag{{Key: aws.String(b.readOnlyTag(request.Node)), Value: aws.String(mark)}},
			})
			return err
		})
}

// unmark removes what mark has put on the volume for a node, or for any.
func (b *backend) unmark(ctx context.Context, v types.Volume, node string) error {
	var marks []types.Tag
	for _, t := range v.Tags {
		key := aws.ToString(t.Key)
		if prefix := b.readOnlyTag(""); key == prefix+node || node == "" && len(key) > len(prefix) &&
			key[:len(prefix)] == prefix {
			marks = append(marks, types.Tag{Key: t.Key, Value: t.Value})
		}
	}
	if len(marks) == 0 {
		return nil
	}
	return b.finish(ctx, &b.tagging, *v.VolumeId+" "+node, "taking away the mark that it is read-only",
		func(ctx context.Context) error {
			_, err := b.once.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{*v.VolumeId}, Tags: marks})
			return err
		})
}

// Detach detaches a volume from an instance, or from all. One of another cluster that is not attached there is success:
// or else what Attach has refused could never be tidied up. Kinds: NotFound for the volume; Denied.
func (b *backend) Detach(ctx context.Context, handle, node string) (err error) {
	defer annotate(&err, "detach", handle)
	request := attach.Request{Volume: handle, Node: node}
	v, known := b.shown.Last(handle)
	if !known || node == "" || b.owned(handle, v.Tags) != nil {
		if v, err = b.volume(ctx, handle); err != nil {
			return err
		}
		seen := attachmentsOf(v)
		request.Seen = &seen
	}
	if err := b.owned(handle, v.Tags); err != nil {
		if slices.ContainsFunc(attachmentsOf(v).Attachments,
			func(a attach.Attachment) bool { return node == "" || a.Node == node }) {
			return err
		}
		return nil
	}
	if node != "" && !isID("i", node) {
		return nil // No instance has that ID, and none ever had.
	}
	if err := b.attach.Detach(ctx, request); err != nil {
		return err
	}
	if late, ok := b.shown.Last(handle); ok {
		v = late // It may have been marked since.
	}
	return b.unmark(ctx, v, node)
}
