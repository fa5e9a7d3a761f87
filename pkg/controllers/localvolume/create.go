package localvolume

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

// Create has a node make a volume: the first of those that have room, until one of them does.
func (m *Master) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	c := &creation{Master: m, spec: spec, handle: m.Handle(spec.Name), full: map[string]string{}}
	for {
		o, err := m.get(ctx, c.handle)
		if err != nil {
			return nil, err
		}
		if made, err := c.goOn(ctx, o); made != nil || err != nil {
			return made, err
		}
	}
}

// creation is a call of Create.
type creation struct {
	*Master
	spec   backends.Spec
	handle string
	own    types.UID         // of the LocalVolume that this call wrote
	asked  types.UID         // of the LocalVolume about which the worker was asked since this call began
	full   map[string]string // why nodes are not to be asked, by their names
}

// goOn does what the LocalVolume asks for, nil for none, and waits for the worker. Without a volume and an error the
// object is to be looked at again.
func (c *creation) goOn(ctx context.Context, o *v1alpha1.LocalVolume) (*backends.Volume, error) {
	switch {
	case o == nil:
		return nil, c.begin(ctx)
	case isGone(o) && (o.DeletionTimestamp != nil || o.Spec.Delete || !c.fits(o)):
		_, err := c.withdraw(ctx, o)
		return nil, err
	case o.Spec.Delete:
		return nil, backends.Errorf(backends.Busy, "the volume %s of this name is being deleted: ask again", o.Name)
	case o.Status.State == v1alpha1.VolumeReady && c.own != o.UID:
		return nil, backends.Errorf(backends.Exists, "a volume of this name is on node %s", o.Spec.Node)
	case o.Status.State == v1alpha1.VolumeReady:
		return c.describe(o), nil
	case hasEnded(o):
		return nil, c.refused(ctx, o)
	}
	return nil, c.wait(ctx, o)
}

// beginsWithin is how long a worker may take before another node is asked.
const beginsWithin = 20 * time.Second

// wait waits for the worker. A volume that the node has not begun waits neither for a node that is down nor for long.
func (c *creation) wait(ctx context.Context, o *v1alpha1.LocalVolume) error {
	c.asked = o.UID
	if !isUntouched(o) {
		return c.await(ctx, o)
	}
	why, err := c.down(ctx, o.Spec.Node)
	if err == nil && why == "" {
		why, err = c.waitForBegin(ctx, o)
	}
	if err != nil || why == "" {
		return err
	}
	c.full[o.Spec.Node] = why // It is withdrawn, and another node is asked.
	return nil
}

// waitForBegin says why no longer to wait for a worker that has not begun; empty when it has.
func (c *creation) waitForBegin(ctx context.Context, o *v1alpha1.LocalVolume) (why string, err error) {
	patient, cancel := context.WithTimeout(ctx, beginsWithin)
	defer cancel()
	if err := c.await(patient, o); err == nil || ctx.Err() != nil || patient.Err() == nil {
		return "", err
	}
	now, err := c.get(ctx, o.Name)
	if err != nil || now == nil || now.UID != o.UID || !isUntouched(now) {
		return "", err
	}
	return fmt.Sprintf("its worker has not begun for %s: look whether it runs", beginsWithin), nil
}

// begin writes the LocalVolume.
func (c *creation) begin(ctx context.Context) error {
	where, err := c.choose(ctx, c.spec, c.full)
	if err != nil {
		return err
	}
	size := c.size(where.pool.Type)
	if size.LimitBytes != 0 && size.RequiredBytes > size.LimitBytes {
		return backends.Errorf(backends.OutOfRange, "the volume is at most %d bytes, and its filesystem needs %d",
			size.LimitBytes, size.RequiredBytes)
	}
	o := &v1alpha1.LocalVolume{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.handle, Finalizers: []string{finalizer}},
		Spec:       intent(c.spec, where, size),
	}
	err = c.write.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) { // Another master was faster, or this one's answer was lost.
		return nil
	}
	if err == nil {
		c.own = o.UID
	}
	return unreachable(err)
}

// size is what the volume is to have in a pool of the type: on a device there is room for its filesystem.
func (c *creation) size(poolType string) backends.CapacityRange {
	size := c.spec.Capacity
	if slices.Contains(c.Access(poolType).Types, backends.Block) {
		size.RequiredBytes = max(size.RequiredBytes, c.spec.LeastDeviceBytes)
	}
	return size
}

// intent is the spec in the form in which the worker gives it to the node's driver. Settings stay with the master: the
// node is told them with each mount.
func intent(spec backends.Spec, where candidate, size backends.CapacityRange) v1alpha1.LocalVolumeSpec {
	s := v1alpha1.LocalVolumeSpec{
		Node: where.node, Pool: where.pool.Name, PoolType: where.pool.Type, VolumeName: spec.Name,
		Parameters: params.Encode(spec.Parameters), Settings: spec.Settings,
		RequiredBytes: size.RequiredBytes, LimitBytes: size.LimitBytes,
		Fingerprint: spec.Fingerprint, Attempt: 1,
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

// fits reports whether the volume of the LocalVolume is the one that is wanted, in a place where nobody has refused it.
func (c *creation) fits(o *v1alpha1.LocalVolume) bool {
	size := backends.CapacityRange{RequiredBytes: o.Spec.RequiredBytes, LimitBytes: o.Spec.LimitBytes}
	return c.full[o.Spec.Node] == "" && c.spec.Topology.Allows(c.place(o.Spec.Node)) &&
		o.Spec.Fingerprint == c.spec.Fingerprint && size == c.size(o.Spec.PoolType)
}

// refused goes on after the node's driver has refused. A refusal of an earlier call is not this one's: the worker is
// asked again.
func (c *creation) refused(ctx context.Context, o *v1alpha1.LocalVolume) error {
	if c.asked != o.UID {
		_, err := c.again(ctx, o)
		return err
	}
	err := refusal(o)
	if o.Status.State != v1alpha1.VolumeAbsent {
		return backends.Errorf(backends.Unusable,
			"the node %s has refused the volume %s, and may have made something of it: %w", o.Spec.Node, o.Name, err)
	}
	if isRemoved, failed := c.withdraw(ctx, o); failed != nil || !isRemoved {
		return failed
	}
	if !backends.Is(err, backends.Exhausted) {
		return err
	}
	c.full[o.Spec.Node] = o.Status.Message
	return nil
}
