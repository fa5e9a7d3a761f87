package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// attachment is the access modes in which a volume is attached to a node.
type attachment []backends.AccessMode

// Attach records that the node may use the volume.
func (b *backend) Attach(ctx context.Context, request backends.AttachRequest) (map[string]string, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(request.Handle)
	if err != nil {
		return nil, err
	}
	if err := v.whole(request.Handle); err != nil {
		return nil, err
	}
	if err := everyAccess().OfRaw(v.raw).Check(request.Access); err != nil {
		return nil, err
	}
	if request.Node == "" || !slices.Contains(b.nodes, request.Node) {
		return nil, backends.Errorf(backends.NotFound, "there is no node %q: there are %q", request.Node, b.nodes)
	}
	want := attachment(slices.Clone(request.Access.Modes))
	if have, ok := v.attached[request.Node]; !ok {
		err = b.attach(v, request.Node, want)
	} else if !slices.Equal(have, want) {
		err = backends.Errorf(backends.Exists,
			"volume %q is attached to node %q in the modes %v: detach it first", v.handle, request.Node, have)
	}
	if err != nil {
		return nil, err
	}
	return map[string]string{"attached-to": request.Node}, nil
}

func (b *backend) attach(v *volume, node string, want attachment) error {
	for _, other := range slices.Sorted(maps.Keys(v.attached)) {
		if v.attached[other].excludes(want) {
			return backends.Errorf(backends.InUse,
				"volume %q is attached to node %q, which rules out node %q: detach it there first", v.handle, other, node)
		}
	}
	if limit := b.config.MaxVolumesPerNode; limit > 0 && b.attachedTo(node) >= limit {
		return backends.Errorf(backends.Exhausted, "node %q has %d volumes attached, as many as it can have", node, limit)
	}
	v.attached[node] = want
	return nil
}

// excludes reports whether a volume cannot be attached to two nodes in these modes. With several nodes, any of them may
// write, so a mode with a single writer allows only one node.
func (a attachment) excludes(other attachment) bool { return a.isAlone() || other.isAlone() }

func (a attachment) isAlone() bool {
	return slices.ContainsFunc(a, func(m backends.AccessMode) bool {
		return m == backends.MultiNodeSingleWriter || slices.Contains(backends.SingleNodeModes(), m)
	})
}

func (b *backend) attachedTo(node string) (count int64) {
	for _, r := range b.volumes.rows {
		if _, ok := r.value.attached[node]; ok {
			count++
		}
	}
	return count
}

// Detach removes the attachment to the node, or to every node if node is empty.
func (b *backend) Detach(ctx context.Context, handle, node string) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(handle)
	if err != nil {
		return err
	}
	if node == "" {
		clear(v.attached)
	}
	delete(v.attached, node)
	return nil
}
