package localvolume

import (
	"cmp"
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

// Create makes a node create a volume. It asks the nodes that have room, one after the other, until one succeeds.
func (m *Master) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	return m.provide(ctx, spec, nil)
}

// Clone makes the node of a volume create another volume with its contents.
func (m *Master) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	return m.provide(ctx, spec, &v1alpha1.VolumeSource{Volume: source})
}

// Restore makes the node of a snapshot create a volume with its contents.
func (m *Master) Restore(ctx context.Context, spec backends.Spec, snapshot string) (*backends.Volume, error) {
	return m.provide(ctx, spec, &v1alpha1.VolumeSource{Snapshot: snapshot})
}

func (m *Master) provide(ctx context.Context, spec backends.Spec, source *v1alpha1.VolumeSource) (
	*backends.Volume, error) {
	v := &volumeMaker{Master: m, spec: spec, source: source, handle: m.Handle(spec.Name), full: map[string]string{}}
	o, err := (&creation[*v1alpha1.LocalVolume]{orders: &m.volumes, maker: v, handle: v.handle}).run(ctx)
	if err != nil {
		return nil, err
	}
	if have, want := sizeOf(o), v.least(o.Spec.PoolType); have < want {
		return nil, backends.Errorf(backends.Unavailable, "the worker of node %s says that the volume %s has %d bytes, and "+
			"needs %d", o.Spec.Node, o.Name, have, want)
	}
	return m.describe(o), nil
}

// volumeMaker creates a volume.
type volumeMaker struct {
	*Master
	spec   backends.Spec
	handle string
	source *v1alpha1.VolumeSource // nil for an empty volume
	full   map[string]string      // why a node is not asked, by its name
}

// wait waits for the worker. A node that does not begin is not asked again.
func (v *volumeMaker) wait(ctx context.Context, o *v1alpha1.LocalVolume) error {
	why, err := v.volumes.awaitBegun(ctx, o)
	if why != "" {
		v.full[o.Spec.Node] = why
	}
	return err
}

func (v *volumeMaker) begin(ctx context.Context) (types.UID, error) {
	node, err := v.nodeOfSource(ctx)
	if err != nil {
		return "", err
	}
	where, err := v.choose(ctx, v.spec, node, v.full)
	if err != nil {
		return "", err
	}
	size, least := v.size(where.pool.Type), v.least(where.pool.Type)
	if size.LimitBytes != 0 && least > size.LimitBytes {
		return "", backends.Errorf(backends.OutOfRange, "the volume is at most %d bytes, and its filesystem needs %d",
			size.LimitBytes, least)
	}
	o := &v1alpha1.LocalVolume{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.handle, Finalizers: []string{finalizer}},
		Spec:       intent(v.spec, where, size),
	}
	o.Spec.Source = v.source
	return v.create(ctx, o)
}

// nodeOfSource returns the node that has the volume's source, or "" without a source.
func (v *volumeMaker) nodeOfSource(ctx context.Context) (node string, err error) {
	switch {
	case v.source == nil:
		return "", nil
	case v.source.Volume != "":
		var found *v1alpha1.LocalVolume
		if found, err = v.volumes.find(ctx, v.source.Volume); err == nil {
			node = found.Spec.Node
		}
	default:
		var found *backends.Snapshot
		if found, err = v.GetSnapshot(ctx, v.source.Snapshot); err == nil {
			node = found.Topology[0][v.TopologyKey]
		}
	}
	if err != nil {
		return "", backends.Errorf(backends.KindOf(err), "the source: %w", err)
	}
	return node, v.checkPlace(node, v.spec.Topology)
}

// checkPlace fails if the topology does not allow the node of the source.
func (m *Master) checkPlace(node string, where backends.TopologyRequirement) error {
	if where.Allows(m.place(node)) {
		return nil
	}
	return backends.Errorf(backends.Exhausted, "the source is on node %s, where a copy of it must be, too, and it may be "+
		"on %v only", node, where.Requisite)
}

// create writes an order and returns its UID. If the order exists already, it returns "" and no error: another master
// was faster, or this one's answer was lost.
func (m *Master) create(ctx context.Context, o v1alpha1.Ordered) (types.UID, error) {
	switch err := m.write.Create(ctx, o); {
	case apierrors.IsAlreadyExists(err):
		return "", nil
	case apierrors.IsInvalid(err):
		return "", backends.Errorf(backends.Invalid, "Kubernetes cannot keep what was asked for: %w", err)
	case err != nil:
		return "", unreachable(err)
	}
	return o.GetUID(), nil
}

// size returns the size range of the volume in a pool of the type. Without a required size, the node's driver picks
// one: its usual size, or that of the source, and more if the filesystem needs more.
func (v *volumeMaker) size(poolType string) backends.CapacityRange {
	size := v.spec.Capacity
	if size.RequiredBytes > 0 {
		size.RequiredBytes = v.least(poolType)
	}
	return size
}

// least returns the least size of the volume in a pool of the type. A device must have room for its filesystem.
func (v *volumeMaker) least(poolType string) int64 {
	if slices.Contains(v.Access(poolType).Types, backends.Block) {
		return max(v.spec.Capacity.RequiredBytes, v.spec.LeastDeviceBytes)
	}
	return v.spec.Capacity.RequiredBytes
}

// intent converts the spec to the form in which the worker passes it to the node's driver. Settings stay with the
// master: the node gets them with each mount.
func intent(spec backends.Spec, where candidate, size backends.CapacityRange) v1alpha1.LocalVolumeSpec {
	s := v1alpha1.LocalVolumeSpec{
		Order: v1alpha1.Order{Node: where.node, Attempt: 1},
		Pool:  where.pool.Name, PoolType: where.pool.Type, VolumeName: spec.Name,
		Parameters: params.Encode(spec.Parameters), Settings: spec.Settings,
		RequiredBytes: size.RequiredBytes, LimitBytes: size.LimitBytes, Fingerprint: spec.Fingerprint,
	}
	if spec.AllowModeChange {
		maps.Copy(s.Parameters, params.Encode(&params.Conversion{Allow: true}))
	}
	if spec.Mutable != nil {
		s.MutableParameters = params.Encode(spec.Mutable)
	}
	for _, mode := range spec.Access.Modes {
		s.Access.Modes = append(s.Access.Modes, v1alpha1.AccessMode(mode))
	}
	for _, how := range spec.Access.Mountings {
		s.Access.Mounts = append(s.Access.Mounts, v1alpha1.VolumeMount(how))
	}
	s.Access.Block = slices.Contains(spec.Access.Types, backends.Block)
	if len(s.Access.Mounts) == 0 && slices.Contains(spec.Access.Types, backends.Mount) {
		s.Access.Mounts = []v1alpha1.VolumeMount{{}}
	}
	return s
}

func (v *volumeMaker) fits(o *v1alpha1.LocalVolume) bool {
	size := backends.CapacityRange{RequiredBytes: o.Spec.RequiredBytes, LimitBytes: o.Spec.LimitBytes}
	return v.full[o.Spec.Node] == "" && v.spec.Topology.Allows(v.place(o.Spec.Node)) &&
		o.Spec.Fingerprint == v.spec.Fingerprint && size == v.size(o.Spec.PoolType) &&
		contentOf(o.Spec.Source) == contentOf(v.source)
}

// goElsewhere rules out the node, so that the next one is asked, if the volume may be there.
func (v *volumeMaker) goElsewhere(node, why string) bool {
	v.full[node] = cmp.Or(why, "it has no room")
	return true
}
