package backends

import (
	"context"
	"log/slog"
	"strings"
)

// Definition describes a backend before it is opened.
type Definition struct {
	Name    string // as in --backend, such as "local"
	Summary string // one line for --help and the documentation

	// NewParameters returns a pointer to a zero struct that StorageClass parameters are decoded into (package params
	// explains the tags). The next two are nil if the backend has no such parameters.
	NewParameters         func() any
	NewMutable            func() any // for VolumeAttributesClass parameters
	NewSnapshotParameters func() any // for VolumeSnapshotClass parameters
	// NewConfig returns a pointer to a struct with the default configuration, which --config is decoded into as strict
	// YAML; nil if there is no configuration.
	NewConfig func() any

	// Inseparable says that controller and node must be one process, because they share state.
	Inseparable bool
	// FindsNode says that Open, if no node ID is given, finds out the ID by which the storage knows this node. A host's
	// name means nothing to the storage.
	FindsNode bool
	// ListsOwn says that List returns only volumes of this cluster, so that a volume that nothing in the cluster refers to
	// is left over. Shared storage, and disks that were used elsewhere, also list the volumes of other clusters.
	ListsOwn bool

	// Open starts the backend: it repairs what a crash left behind, logs the repairs, and fails with a sentence that says
	// what is missing.
	Open func(ctx context.Context, options Options) (*Instance, error)
}

// DriverName is the driver's name in StorageClasses. Each backend has its own, because a CSIDriver object describes the
// capabilities of one name.
func (d Definition) DriverName() string { return d.Name + ".csi.stowage.dev" }

// Options are the options for opening a backend.
type Options struct {
	Driver  string // the driver's name, such as local.csi.stowage.dev: a prefix for topology keys and tags
	DataDir string // a directory that belongs to the backend alone; its files are in it unless Config names other paths
	// this node's ID; empty in a process that serves only the controller, and if a backend with FindsNode has to find it
	NodeID string
	// NodeOnly says that this process serves only the node: background work on volumes is not its task.
	NodeOnly bool
	// Node asks the orchestrator about this node, for a backend with FindsNode; nil in a process that serves only the
	// controller.
	Node *NodeSource
	// Cluster asks the orchestrator for an ID of the cluster that is unique and never changes. A backend needs it to
	// distinguish its items from those of other clusters. It is nil without an orchestrator. Its error is a sentence.
	Cluster func(ctx context.Context) (string, error)
	// Topology is where this node is, if configured: for a backend that cannot find out by itself.
	Topology Topology
	Config   any // what NewConfig returned, filled in; nil without one
	Log      *slog.Logger
}

// Instance is a running backend. A process that serves only one role may leave the other side nil.
type Instance struct {
	Controller Backend
	Node       NodeBackend
	// NodeID is this node's ID if the backend found it; empty for Options.NodeID.
	NodeID string
	// Close ends the work in the background and releases what Open took. It waits until the context ends, which has a
	// deadline. Work that has not ended by then ends with the process, and the next Open resumes it. Until it has ended it
	// keeps other processes out, and Close may be called again. Close may be nil. Kinds: Busy, naming what has not ended.
	Close func(ctx context.Context) error
}

// NodeSource asks the orchestrator about this node.
type NodeSource struct {
	Name string // the object that is asked, for people, such as: the Node object "worker-1"
	// Get returns what is known. It honours its context. Its error continues the sentence that Name begins.
	Get func(ctx context.Context) (NodeInfo, error)
}

// NodeInfo is what an orchestrator knows about a node's machine. Unknown fields are empty.
type NodeInfo struct {
	// the machine's ID in the form that its cloud has for orchestrators, such as aws:///us-east-1a/i-0123456789abcdef0
	ProviderID         string
	Type, Zone, Region string
}

// Registry is the list of the backends in a binary.
type Registry []Definition

// Lookup returns the definition of that name. Kinds: Invalid, naming those that there are.
func (r Registry) Lookup(name string) (Definition, error) {
	for _, d := range r {
		if d.Name == name {
			return d, nil
		}
	}
	return Definition{}, Errorf(Invalid, "there is no backend %q: use %s", name, strings.Join(r.Names(), " or "))
}

// Names lists the backends in the registry's order.
func (r Registry) Names() []string {
	names := make([]string, len(r))
	for i, d := range r {
		names[i] = d.Name
	}
	return names
}
