package localvolume

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// Expand has the node grow the volume.
func (m *Master) Expand(ctx context.Context, handle string, size backends.CapacityRange) (backends.Expansion, error) {
	if size.LimitBytes != 0 && size.LimitBytes < size.RequiredBytes {
		return backends.Expansion{}, backends.Errorf(backends.OutOfRange, "no size fits %s", size)
	}
	g := &growth{Master: m, handle: handle, size: size}
	for {
		o, err := m.volumes.get(ctx, handle)
		if err != nil {
			return backends.Expansion{}, err
		}
		if grown, err := g.goOn(ctx, o); grown != nil || err != nil {
			return expansion(grown, size, err)
		}
	}
}

// growth is a call of Expand.
type growth struct {
	*Master
	handle  string
	size    backends.CapacityRange
	attempt int64 // that this call has asked for
}

// goOn does what the LocalVolume asks for, nil for none, and waits for the worker. Without a volume that is large
// enough and an error, the object is to be looked at again.
func (g *growth) goOn(ctx context.Context, o *v1alpha1.LocalVolume) (*v1alpha1.LocalVolume, error) {
	switch {
	case o == nil || sizeOf(o) == 0 || isOver(o):
		return nil, g.volumes.checkUsable(g.handle, o)
	case o.Spec.Delete:
		return nil, backends.Errorf(backends.Busy, "the volume %s is being deleted", g.handle)
	case sizeOf(o) >= g.size.RequiredBytes:
		return o, nil
	case !hasEnded(o):
		return nil, g.volumes.await(ctx, o)
	case g.attempt == o.Spec.Attempt:
		return nil, g.refused(o)
	case g.attempt != 0:
		return nil, backends.Errorf(backends.Busy, "the volume %s was grown by another call beside this one: ask again",
			g.handle)
	}
	o.Spec.RequiredBytes, o.Spec.LimitBytes = g.size.RequiredBytes, g.size.LimitBytes
	attempt, err := g.volumes.again(ctx, o)
	g.attempt = attempt
	return nil, err
}

// refused is what the node's driver said of an expansion. An error of no Kind stays one: it is final for csi-resizer,
// so that the claim can be lowered.
func (m *Master) refused(o *v1alpha1.LocalVolume) error {
	if r := o.Status.Refusal; r != nil && r.Reason == "Internal" {
		return fmt.Errorf("node %s: %s", o.Spec.Node, r.Message)
	}
	return m.volumes.whyRefused(o)
}

// expansion is the answer about a volume that is large enough.
func expansion(o *v1alpha1.LocalVolume, size backends.CapacityRange, err error) (backends.Expansion, error) {
	if err != nil {
		return backends.Expansion{}, err
	}
	if have := sizeOf(o); !size.Contains(have) {
		return backends.Expansion{}, backends.Errorf(backends.OutOfRange,
			"the volume %s has %d bytes already, which is not %s", o.Name, have, size)
	}
	return backends.Expansion{CapacityBytes: sizeOf(o), NodeExpansion: o.Status.NodeExpansion}, nil
}
