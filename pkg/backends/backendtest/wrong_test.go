package backendtest

import "github.com/stowage-csi/stowage/pkg/backends"

// parts is a right backend. Wrong backends embed it and break one promise.
type parts struct {
	backends.Backend
	backends.NodeBackend
	backends.Attacher
	backends.Expander
	backends.Cloner
	backends.Modifier
	backends.Prover
	backends.Lister
	backends.CapacityReporter
	backends.HealthReporter
	backends.Snapshotter
	backends.SnapshotLister
	backends.GroupSnapshotter
	backends.Topologist
	backends.Releaser
	backends.Limiter
	backends.Inspector
	backends.Locator
}

func partsOf(i *backends.Instance) parts {
	f := backends.Resolve(i.Controller, i.Node)
	return parts{
		i.Controller, i.Node, f.Attach, f.Expand, f.Clone, f.Modify, f.Prove, f.List, f.Capacity, f.Health,
		f.Snapshot, f.Snapshots, f.Group, f.Topologist, f.Release, f.Limit, f.Inspect, f.Locate,
	}
}
