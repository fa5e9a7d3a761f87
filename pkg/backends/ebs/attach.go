package ebs

import (
	"context"
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/attach"
)

const (
	// sizeAttribute is the volume's size in bytes when it was attached. The node compares the device with it.
	sizeAttribute = "sizeBytes"
	// typesAttribute lists the access types that the volume supports. Kubernetes attaches once for all PersistentVolumes
	// that name the volume, so the node may be asked to mount a volume that was attached as a raw device.
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
	if err := checkAccess(view.Access, request.Access); err != nil {
		return nil, err
	}
	seen := attachmentsOf(v)
	_, err = b.attach.Attach(ctx, attach.Request{Volume: request.Handle, Node: request.Node, Seen: &seen})
	if err != nil {
		return nil, err
	}
	return map[string]string{
		sizeAttribute: strconv.FormatInt(view.CapacityBytes, 10), typesAttribute: textOf(view.Access.Types),
	}, nil
}

// textOf renders types for typesAttribute, and typesIn parses them.
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

// Detach detaches a volume from an instance, or from all instances if node is empty. It succeeds for a volume of
// another cluster that is not attached there: otherwise an attachment that Attach has refused could never be cleaned
// up. Kinds: NotFound for the volume; Denied.
func (b *backend) Detach(ctx context.Context, handle, node string) (err error) {
	defer annotate(&err, "detach", handle)
	request := attach.Request{Volume: handle, Node: node}
	v, known := b.shown.Lately(handle, youngOwner)
	if !known || node == "" || b.owned(handle, v.Tags) != nil {
		if v, err = b.current(ctx, handle); err != nil {
			return err
		}
		seen := attachmentsOf(v)
		request.Seen = &seen
	}
	if err := b.owned(handle, v.Tags); err != nil {
		if attachmentsOf(v).Has(node) {
			return err
		}
		return nil
	}
	if node != "" && !isID("i", node) {
		return nil // No instance has or ever had that ID.
	}
	return b.attach.Detach(ctx, request)
}
