package backends

import (
	"context"
	"log/slog"
	"strings"
)

// Definition is all that Stowage knows of a backend before it is opened.
type Definition struct {
	Name    string // as in --backend, such as "local"
	Summary string // one line for --help and the documentation

	// NewParameters returns a pointer to a zero struct that StorageClass parameters are decoded into
	// (package params explains the tags). The next two are nil when there is nothing of the sort.
	NewParameters         func() any
	NewMutable            func() any // for VolumeAttributesClass parameters
	NewSnapshotParameters func() any // for VolumeSnapshotClass parameters
	// NewConfig returns a pointer to a struct with the default configuration, which --config is decoded
	// into as strict YAML; nil when there is nothing to configure.
	NewConfig func() any

	// Inseparable says that controller and node must be one process, because the one knows what the other does.
	Inseparable bool
	// FindsNode says that Open finds out by which ID the storage knows this node when nobody says so: a host's name would
	// mean nothing to it.
	FindsNode bool
	// ListsOwn says that List names volumes of this cluster alone, so that one that nothing in the cluster names is left
	// over. Storage that clusters share, and disks that have been elsewhere, list the volumes of others too.
	ListsOwn bool

	// Open starts the backend: it repairs what a crash left behind, reports it to the log, and fails
	// with a sentence that says what is missing.
	Open func(ctx context.Context, options Options) (*Instance, error)
}

// DriverName is what StorageClasses call the driver: one for each backend, since a CSIDriver object fixes what its name
// can do.
func (d Definition) DriverName() string { return d.Name + ".csi.stowage.dev" }

// Options is what a backend is opened with.
type Options struct {
	Driver  string // the driver's name, such as local.csi.stowage.dev: a prefix for topology keys and tags
	DataDir string // a directory that is the backend's own; it holds everything that the backend keeps
	// this node's ID; empty in a process that serves the controller only, and for a backend with FindsNode to find out
	NodeID string
	// NodeOnly says that this process serves the node only: what a backend does in the background for volumes is not its
	// to do.
	NodeOnly bool
	// Node asks the orchestrator about this node, for a backend with FindsNode; nil in a process that serves the
	// controller only.
	Node *NodeSource
	// Cluster asks the orchestrator for an ID of the cluster that no other has and that never changes, for a backend that
	// has to tell its things from those of other clusters; nil where there is no orchestrator. Its error is a sentence.
	Cluster func(ctx context.Context) (string, error)
	// Topology is where this node is, as far as somebody said so: for a backend that cannot find out by itself.
	Topology Topology
	Config   any // what NewConfig returned, filled in; nil without one
	Log      *slog.Logger
}

// Instance is a backend at work. A process that serves one role only may leave the other side nil.
type Instance struct {
	Controller Backend
	Node       NodeBackend
	// NodeID is this node's ID when the backend found it out; empty for Options.NodeID.
	NodeID string
	// Close ends the work in the background, waits for that until the context ends, which has a deadline, and frees what
	// Open took. What has not ended by then ends with the process, and the next Open takes it up. Until it has ended it
	// keeps other processes out, and Close may be called again. It may be nil. Kinds: Busy, naming what has not ended.
	Close func(ctx context.Context) error
}

// NodeSource asks the orchestrator about this node.
type NodeSource struct {
	Name string // what is asked, for people, such as: the Node object "worker-1"
	// Get returns what is known. It honours its context. Its error goes on with the sentence that Name begins.
	Get func(ctx context.Context) (NodeInfo, error)
}

// NodeInfo is what an orchestrator knows of a node's machine. What it does not know is empty.
type NodeInfo struct {
	// the machine's ID in the form that its cloud has for orchestrators, such as aws:///us-east-1a/i-0123456789abcdef0
	ProviderID         string
	Type, Zone, Region string
}

// Registry is the list of the backends that a binary has.
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
