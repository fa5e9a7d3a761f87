package localvolume

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// describe is the volume as the contract has it.
func (m *Master) describe(o *v1alpha1.LocalVolume) *backends.Volume {
	return &backends.Volume{
		Handle: o.Name, Name: o.Spec.VolumeName, Fingerprint: o.Spec.Fingerprint,
		Access:   m.Access(o.Spec.PoolType).OfRaw(len(o.Spec.Access.Mounts) == 0),
		Topology: []backends.Topology{m.place(o.Spec.Node)}, Settings: o.Spec.Settings,
		CapacityBytes: sizeOf(o),
	}
}

// sizeOf is the size of the volume in bytes; 0 while there is none.
func sizeOf(o *v1alpha1.LocalVolume) int64 {
	if o.Status.Capacity == nil {
		return 0
	}
	return o.Status.Capacity.Value()
}

// usable is the volume of a LocalVolume that was made and is not gone. Kinds: NotFound; Unusable.
func (m *Master) usable(handle string, o *v1alpha1.LocalVolume) (*backends.Volume, error) {
	switch {
	case o == nil || isOver(o):
		return nil, notFound(handle)
	case o.Status.Capacity == nil && hasEnded(o):
		return nil, backends.Errorf(backends.Unusable, "the volume %s could not be made: %w", handle, refusal(o))
	case o.Status.Capacity == nil:
		return nil, notYet(o)
	}
	return m.describe(o), nil
}

// Find returns the volume of the spec's name.
func (m *Master) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	return m.Get(ctx, m.Handle(spec.Name))
}

// Get returns the volume with the handle.
func (m *Master) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	if !m.isHandle(handle) {
		return nil, notFound(handle)
	}
	o, err := m.get(ctx, handle)
	if err != nil {
		return nil, err
	}
	return m.usable(handle, o)
}

// isHandle reports whether a text can be a handle. All handles have one form.
func (m *Master) isHandle(text string) bool {
	form := m.Handle("")
	prefix, _, _ := strings.Cut(form, "-")
	rest, ok := strings.CutPrefix(text, prefix+"-")
	return ok && len(text) == len(form) && strings.Trim(rest, "0123456789abcdef") == ""
}

// List returns the volumes in the order of their handles, also those that are being made or deleted.
func (m *Master) List(ctx context.Context, page backends.Page) (volumes []backends.Volume, next string, err error) {
	after, err := pagetoken.Parse(page.Token, m.isHandle)
	if err != nil {
		return nil, "", err
	}
	var all v1alpha1.LocalVolumeList
	if err := m.cache.List(ctx, &all, client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", unreachable(err)
	}
	items := slices.DeleteFunc(all.Items, func(o v1alpha1.LocalVolume) bool { return o.Name <= after || isOver(&o) })
	slices.SortFunc(items, func(a, b v1alpha1.LocalVolume) int { return strings.Compare(a.Name, b.Name) })
	items, next = pagetoken.Cut(items, page.Limit, func(o v1alpha1.LocalVolume) string { return o.Name })
	for i := range items {
		volumes = append(volumes, *m.describe(&items[i]))
	}
	return volumes, next, nil
}
