package localvolume

import (
	"context"
	"maps"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

// Modify has the node change mutable parameters of the volume.
func (m *Master) Modify(ctx context.Context, handle string, mutable any) error {
	if have, want := reflect.TypeOf(mutable), reflect.TypeOf(m.NewMutable()); have != want {
		return backends.Errorf(backends.Invalid, "the mutable parameters are a %v: they must be a %v", have, want)
	}
	wanted := params.Encode(mutable)
	modification := &adaptation{Master: m, handle: handle,
		isDone: func(o *v1alpha1.LocalVolume) bool { return isModified(o, wanted) },
		want: func(o *v1alpha1.LocalVolume) {
			o.Spec.MutableParameters = merged(o.Status.MutableParameters, wanted)
			o.Spec.RequiredBytes = min(o.Spec.RequiredBytes, sizeOf(o)) // What was refused is not asked for once more.
		},
	}
	_, err := modification.run(ctx)
	return err
}

// isModified reports whether the node's driver has, and obeys, the mutable parameters. One that has refused others, or
// is at work on some, may obey those.
func isModified(o *v1alpha1.LocalVolume, wanted map[string]string) bool {
	applied := o.Status.MutableParameters
	return hasEnded(o) && o.Status.Refusal == nil && maps.Equal(o.Spec.MutableParameters, applied) &&
		maps.Equal(merged(applied, wanted), applied)
}

// merged are the parameters with others in the place of those of the same names; nil for none.
func merged(parameters, others map[string]string) map[string]string {
	if len(others) == 0 {
		return parameters
	}
	all := maps.Clone(others)
	for name, value := range parameters {
		if _, ok := others[name]; !ok {
			all[name] = value
		}
	}
	return all
}
