package patient

import (
	"context"
	"fmt"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// offered lists the controller features of a cloud's backend.
type offered struct {
	backends.Backend
	backends.Attacher
	backends.Expander
	backends.Cloner
	backends.Modifier
	backends.Lister
	backends.HealthReporter
	backends.MachineReporter
	backends.Snapshotter
	backends.SnapshotLister
	backends.Topologist
}

// Wrap makes the instance repeat calls in that manner. It fails if the backend's features differ from those of a
// cloud's backend, because calls of other features would not be repeated.
func Wrap(instance *backends.Instance, m Manner) error {
	f := backends.Resolve(instance.Controller, instance.Node)
	all := offered{instance.Controller, f.Attach, f.Expand, f.Clone, f.Modify, f.List, f.Health, f.Machines, f.Snapshot,
		f.Snapshots, f.Topologist}
	c, n := &controller{offered: all, m: m}, node{instance.Node, f.Limit, f.Locate, f.Measure, m}
	has, wants := f.Names(), backends.Resolve(c, n).Names()
	if !slices.Equal(has, wants) {
		return fmt.Errorf("the backend offers %q, and not %q as a cloud's does", has, wants)
	}
	instance.Controller, instance.Node = c, n
	return nil
}

// controller embeds the features that make no requests.
type controller struct {
	offered
	m                  Manner
	volumes, snapshots names
}

func (c *controller) make(ctx context.Context, spec backends.Spec,
	call func(ctx context.Context) (*backends.Volume, error)) (*backends.Volume, error) {
	find := func(ctx context.Context) (*backends.Volume, error) { return c.Backend.Find(ctx, spec) }
	return create(ctx, c.m, &c.volumes, spec.Name, find, call)
}

func (c *controller) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	return c.make(ctx, spec, func(ctx context.Context) (*backends.Volume, error) { return c.Backend.Create(ctx, spec) })
}

func (c *controller) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	return c.make(ctx, spec,
		func(ctx context.Context) (*backends.Volume, error) { return c.Cloner.Clone(ctx, spec, source) })
}

func (c *controller) Restore(ctx context.Context, spec backends.Spec, snapshot string) (*backends.Volume, error) {
	return c.make(ctx, spec,
		func(ctx context.Context) (*backends.Volume, error) { return c.Snapshotter.Restore(ctx, spec, snapshot) })
}

func (c *controller) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	return must(ctx, c.m, func(ctx context.Context) (*backends.Volume, error) { return c.Backend.Find(ctx, spec) })
}

func (c *controller) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	return must(ctx, c.m, func(ctx context.Context) (*backends.Volume, error) { return c.Backend.Get(ctx, handle) })
}

func (c *controller) Delete(ctx context.Context, handle string) error {
	return remove(ctx, c.m, handle, c.Backend.Get, c.Backend.Delete)
}

func (c *controller) Attach(ctx context.Context, request backends.AttachRequest) (map[string]string, error) {
	return must(ctx, c.m, func(ctx context.Context) (map[string]string, error) { return c.Attacher.Attach(ctx, request) })
}

func (c *controller) Detach(ctx context.Context, handle, node string) error {
	return do(ctx, c.m, func(ctx context.Context) error { return c.Attacher.Detach(ctx, handle, node) })
}

func (c *controller) Expand(ctx context.Context, handle string,
	size backends.CapacityRange) (backends.Expansion, error) {
	return must(ctx, c.m,
		func(ctx context.Context) (backends.Expansion, error) { return c.Expander.Expand(ctx, handle, size) })
}

func (c *controller) Modify(ctx context.Context, handle string, mutable any) error {
	return do(ctx, c.m, func(ctx context.Context) error { return c.Modifier.Modify(ctx, handle, mutable) })
}

func (c *controller) Health(ctx context.Context, handle string) ([]backends.HealthIssue, error) {
	return must(ctx, c.m,
		func(ctx context.Context) ([]backends.HealthIssue, error) { return c.HealthReporter.Health(ctx, handle) })
}

func (c *controller) CreateSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	find := func(ctx context.Context) (*backends.Snapshot, error) { return c.Snapshotter.FindSnapshot(ctx, spec) }
	return create(ctx, c.m, &c.snapshots, spec.Name, find, func(ctx context.Context) (*backends.Snapshot, error) {
		return c.Snapshotter.CreateSnapshot(ctx, spec)
	})
}

func (c *controller) FindSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	return must(ctx, c.m,
		func(ctx context.Context) (*backends.Snapshot, error) { return c.Snapshotter.FindSnapshot(ctx, spec) })
}

func (c *controller) GetSnapshot(ctx context.Context, handle string) (*backends.Snapshot, error) {
	return must(ctx, c.m,
		func(ctx context.Context) (*backends.Snapshot, error) { return c.Snapshotter.GetSnapshot(ctx, handle) })
}

func (c *controller) DeleteSnapshot(ctx context.Context, handle string) error {
	return remove(ctx, c.m, handle, c.Snapshotter.GetSnapshot, c.Snapshotter.DeleteSnapshot)
}

func (c *controller) Machine(ctx context.Context, query backends.MachineQuery) (backends.Machine, error) {
	return must(ctx, c.m,
		func(ctx context.Context) (backends.Machine, error) { return c.MachineReporter.Machine(ctx, query) })
}
