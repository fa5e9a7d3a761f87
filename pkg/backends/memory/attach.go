package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// attachment is how a volume is attached to a node.
type attachment struct {
	readOnly bool
	modes    []backends.AccessMode
}

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
	want := attachment{request.ReadOnly, slices.Clone(request.Access.Modes)}
	if have, ok := v.attached[request.Node]; !ok {
		err = b.attach(v, request.Node, want)
	} else if have.readOnly != want.readOnly || !slices.Equal(have.modes, want.modes) {
		err = backends.Errorf(backends.Exists,
			"volume %q is attached to node %q with read-only %t in the modes %v: detach it first", v.handle, request.Node,
			have.readOnly, have.modes)
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

// excludes tells whether one volume cannot be attached to two nodes in these ways.
func (a attachment) excludes(other attachment) bool {
	if a.isOne(backends.SingleNodeModes()...) || other.isOne(backends.SingleNodeModes()...) {
		return true
	}
	oneWriter := a.isOne(backends.MultiNodeSingleWriter) || other.isOne(backends.MultiNodeSingleWriter)
	return oneWriter && !a.readOnly && !other.readOnly
}

func (a attachment) isOne(modes ...backends.AccessMode) bool {
	return slices.ContainsFunc(a.modes, func(m backends.AccessMode) bool { return slices.Contains(modes, m) })
}

func (b *backend) attachedTo(node string) (count int64) {
	for _, r := range b.volumes.rows {
		if _, ok := r.value.attached[node]; ok {
			count++
		}
	}
	return count
}

// Detach forgets that the node, or any node, may use the volume.
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
