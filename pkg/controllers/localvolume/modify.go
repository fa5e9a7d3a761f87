package localvolume

import (
	"context"
	"maps"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

// Modify makes the node change mutable parameters of the volume.
func (m *Master) Modify(ctx context.Context, handle string, mutable any) error {
	if have, want := reflect.TypeOf(mutable), reflect.TypeOf(m.NewMutable()); have != want {
		return backends.Errorf(backends.Invalid, "the mutable parameters are a %v: they must be a %v", have, want)
	}
	wanted := params.Encode(mutable)
	modification := &adaptation{Master: m, handle: handle,
		isDone: func(o *v1alpha1.LocalVolume) bool { return isModified(o, wanted) },
		want: func(o *v1alpha1.LocalVolume) {
			o.Spec.MutableParameters = wanted
			o.Spec.RequiredBytes = min(o.Spec.RequiredBytes, sizeOf(o)) // Do not request a refused expansion again.
		},
	}
	_, err := modification.run(ctx)
	return err
}

// isModified reports whether the node's driver was last given the mutable parameters and accepted them. It returns
// false during an attempt and after a refusal of other parameters, because the driver's state is not known then.
func isModified(o *v1alpha1.LocalVolume, wanted map[string]string) bool {
	return hasEnded(o) && maps.Equal(o.Spec.MutableParameters, wanted) && maps.Equal(o.Status.MutableParameters, wanted)
}
