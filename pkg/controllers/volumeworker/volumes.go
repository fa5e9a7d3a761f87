package volumeworker

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// Volumes returns an Agent for the LocalVolumes of a node.
func Volumes(o Options, live client.Reader, write client.Client) *Agent[*v1alpha1.LocalVolume] {
	empty := func() *v1alpha1.LocalVolume { return &v1alpha1.LocalVolume{} }
	return &Agent[*v1alpha1.LocalVolume]{Options: o, live: live, write: write, empty: empty, hand: volumes{o.Driver},
		changed: func() {}}
}

// volumeDriver creates, changes and deletes volumes.
type volumeDriver interface {
	Place(ctx context.Context) (map[string]string, error)
	Make(ctx context.Context, w csiclient.Wanted) (csiclient.Volume, error)
	Expand(ctx context.Context, handle string, required, limit int64) (csiclient.Expansion, error)
	Modify(ctx context.Context, handle string, mutable map[string]string) error
	Delete(ctx context.Context, handle string) error
}

// volumes asks the driver for volumes.
type volumes struct{ volumeDriver }

func (v volumes) create(ctx context.Context, o *v1alpha1.LocalVolume) outcome {
	want := wanted(&o.Spec)
	var err error
	if want.Segments, err = v.Place(ctx); err != nil {
		return outcome{err: err, isOpen: true}
	}
	made, err := v.Make(ctx, want)
	switch {
	case err != nil && csiclient.IsAbsent(err):
		return outcome{state: v1alpha1.StateAbsent, err: err}
	case err != nil:
		return outcome{err: err}
	case made.Handle != o.Name:
		return outcome{err: otherHandle(made.Handle, o.Spec.VolumeName, o.Name)}
	}
	return outcome{state: v1alpha1.StateReady, note: func() {
		o.Status.Capacity = v1alpha1.NewSize(made.SizeBytes)
	}}
}

// otherHandle returns the error for a driver whose handle differs from the master's.
func otherHandle(made, name, wanted string) error {
	return fmt.Errorf("the driver made %q for the name %q, which must be %q: the driver and the master are of different "+
		"versions", made, name, wanted)
}

// adapt modifies or grows a volume. An attempt does only one of the two.
func (v volumes) adapt(ctx context.Context, o *v1alpha1.LocalVolume) outcome {
	if !maps.Equal(o.Spec.MutableParameters, o.Status.MutableParameters) {
		return v.modify(ctx, o)
	}
	if have := o.Status.Capacity.Bytes(); have > 0 && have >= o.Spec.RequiredBytes {
		return outcome{state: o.Status.State}
	}
	grown, err := v.Expand(ctx, o.Name, o.Spec.RequiredBytes, o.Spec.LimitBytes)
	if err != nil {
		return outcome{err: err}
	}
	return outcome{state: v1alpha1.StateReady, note: func() {
		o.Status.Capacity = v1alpha1.NewSize(grown.SizeBytes)
		o.Status.NodeExpansion = o.Status.NodeExpansion || grown.NodeExpansion
	}}
}

// modify gives the driver mutable parameters. After a refusal it is not known which of them are in effect.
func (v volumes) modify(ctx context.Context, o *v1alpha1.LocalVolume) outcome {
	if err := v.Modify(ctx, o.Name, o.Spec.MutableParameters); err != nil {
		return outcome{err: err, note: func() { o.Status.MutableParameters = nil }}
	}
	return outcome{state: v1alpha1.StateReady, note: func() { o.Status.MutableParameters = o.Spec.MutableParameters }}
}

func (v volumes) remove(ctx context.Context, o *v1alpha1.LocalVolume) error {
	return v.Delete(ctx, o.Name)
}

// wanted converts a LocalVolume's spec to a request to the driver.
func wanted(s *v1alpha1.LocalVolumeSpec) csiclient.Wanted {
	w := csiclient.Wanted{Name: s.VolumeName, RequiredBytes: s.RequiredBytes, LimitBytes: s.LimitBytes,
		Parameters: s.Parameters, Mutable: s.MutableParameters, Block: s.Access.Block}
	for _, mode := range s.Access.Modes {
		w.Modes = append(w.Modes, string(mode))
	}
	for _, m := range s.Access.Mounts {
		w.Mounts = append(w.Mounts, csiclient.Mount(m))
	}
	if s.Source != nil {
		w.FromSnapshot, w.FromVolume = s.Source.Snapshot, s.Source.Volume
	}
	return w
}
