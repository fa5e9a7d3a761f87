package localvolume

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// Expand makes the node grow the volume.
func (m *Master) Expand(ctx context.Context, handle string, size backends.CapacityRange) (backends.Expansion, error) {
	if size.LimitBytes != 0 && size.LimitBytes < size.RequiredBytes {
		return backends.Expansion{}, backends.Errorf(backends.OutOfRange, "no size fits %s", size)
	}
	growth := &adaptation{Master: m, handle: handle,
		isDone: func(o *v1alpha1.LocalVolume) bool { return sizeOf(o) >= size.RequiredBytes },
		want: func(o *v1alpha1.LocalVolume) {
			o.Spec.RequiredBytes, o.Spec.LimitBytes = size.RequiredBytes, size.LimitBytes
			o.Spec.MutableParameters = o.Status.MutableParameters
		},
	}
	o, err := growth.run(ctx)
	if err != nil {
		return backends.Expansion{}, err
	}
	if have := sizeOf(o); !size.Contains(have) {
		return backends.Expansion{}, backends.Errorf(backends.OutOfRange,
			"the volume %s has %d bytes already, which is not %s", o.Name, have, size)
	}
	return backends.Expansion{CapacityBytes: sizeOf(o), NodeExpansion: o.Status.NodeExpansion}, nil
}
