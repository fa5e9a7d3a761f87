package backends

// Features holds a backend's optional interfaces; nil for those that it lacks. They are resolved once, from the
// undecorated backend: a decorator hides methods, so that a type assertion on it would fail.
type Features struct {
	// On the controller.
	Attach     Attacher
	Expand     Expander
	Clone      Cloner
	Modify     Modifier
	Prove      Prover
	List       Lister
	Capacity   CapacityReporter
	Health     HealthReporter
	Machines   MachineReporter
	Pools      PoolReporter
	Snapshot   Snapshotter
	Snapshots  SnapshotLister
	Group      GroupSnapshotter
	Topologist Topologist
	// On the node.
	Release Releaser
	Limit   Limiter
	Inspect Inspector
	Locate  Locator
	Measure Meter
}

// Resolve finds out which optional interfaces an instance has. Either side may be nil.
func Resolve(controller Backend, node NodeBackend) Features {
	var f Features
	f.Attach, _ = controller.(Attacher)
	f.Expand, _ = controller.(Expander)
	f.Clone, _ = controller.(Cloner)
	f.Modify, _ = controller.(Modifier)
	f.Prove, _ = controller.(Prover)
	f.List, _ = controller.(Lister)
	f.Capacity, _ = controller.(CapacityReporter)
	f.Health, _ = controller.(HealthReporter)
	f.Machines, _ = controller.(MachineReporter)
	f.Pools, _ = controller.(PoolReporter)
	f.Snapshot, _ = controller.(Snapshotter)
	f.Snapshots, _ = controller.(SnapshotLister)
	f.Group, _ = controller.(GroupSnapshotter)
	f.Topologist, _ = controller.(Topologist)
	f.Release, _ = node.(Releaser)
	f.Limit, _ = node.(Limiter)
	f.Inspect, _ = node.(Inspector)
	f.Locate, _ = node.(Locator)
	f.Measure, _ = node.(Meter)
	return f
}

// Names lists the features that are present, for logs and documentation, in a fixed order.
func (f Features) Names() []string {
	var names []string
	for _, feature := range []struct {
		name string
		has  bool
	}{
		{"attach", f.Attach != nil}, {"expand", f.Expand != nil}, {"clone", f.Clone != nil},
		{"modify", f.Modify != nil}, {"prove", f.Prove != nil}, {"list", f.List != nil},
		{"capacity", f.Capacity != nil},
		{"health", f.Health != nil}, {"machines", f.Machines != nil}, {"pools", f.Pools != nil},
		{"snapshot", f.Snapshot != nil},
		{"list-snapshots", f.Snapshots != nil},
		{"group-snapshot", f.Group != nil}, {"topology", f.Topologist != nil}, {"release", f.Release != nil},
		{"limit", f.Limit != nil}, {"inspect", f.Inspect != nil}, {"locate", f.Locate != nil},
		{"measure", f.Measure != nil},
	} {
		if feature.has {
			names = append(names, feature.name)
		}
	}
	return names
}
