package backends

import "context"

// Backend creates and deletes volumes on one kind of storage. It is required.
type Backend interface {
	// Create makes an empty volume. When a volume of that name exists, whatever it looks like, Create
	// changes nothing and fails with Exists: comparing it with the Spec is the caller's work.
	//
	// Kinds: Exists; Invalid for a Spec that can never be met; OutOfRange when the capacity range cannot be met; Exhausted
	// when there is no room now, or no place that the topology allows; NotFound when something that the Spec names is not
	// there; Unusable when a volume of that name is there, or may be, and cannot be used now. Unusable and Exists come
	// before all of them.
	Create(ctx context.Context, spec Spec) (*Volume, error)

	// Find returns the volume that Create made under the Spec's name. The rest of the Spec only tells where to look, for
	// a backend that keeps volumes in several places: what it finds need not be what the Spec asks for. Kinds: NotFound;
	// Unusable.
	Find(ctx context.Context, spec Spec) (*Volume, error)

	// Get returns the volume with the handle. A handle that the backend could never have given out is
	// NotFound too: nothing about the handle's text may be believed. Kinds: NotFound; Unusable.
	Get(ctx context.Context, handle string) (*Volume, error)

	// Delete removes the volume and its data. Kinds: NotFound when there is none; Unusable when there is, or may
	// be, and it cannot be removed now; InUse when something else depends on it, or when it is in use as far as
	// the backend can know:
	//
	//   - An Attacher knows the nodes that the volume is attached to: it is InUse until it is detached.
	//   - A Releaser knows of this node's use alone: it is InUse from Source to Release.
	//   - A backend that is neither knows of no use at all. That is for an Export only, which any client can
	//     mount without a word to the backend: whoever calls Delete has unmounted it everywhere. Where the
	//     controller and a node are one process, package driver refuses to delete what that node has
	//     staged or published.
	Delete(ctx context.Context, handle string) error
}

// NodeBackend tells the node where a volume's data is. It is required.
type NodeBackend interface {
	// Source describes what is to be mounted for an attached volume. It neither mounts nor changes
	// anything that the volume's user could see. It may be called again for the same attachment. A
	// backend that is also a Releaser may note that the volume is in use from now on.
	//
	// Kinds: NotFound when there is no such volume; Unusable; Unsupported for an access type that the volume does not
	// have (Access.CheckStaged), as far as the node knows; Invalid when the attachment lacks what Attach returns;
	// Unavailable when it cannot be reached yet, and when a node that sees only what is attached to it cannot tell which
	// of the two it is.
	Source(ctx context.Context, attachment Attachment) (Source, error)
}

// Attacher connects volumes to nodes. A backend without it needs no attach step.
type Attacher interface {
	// Attach makes the volume reachable from the node and returns once it is. The attributes reach the
	// node in Attachment.Attributes. Attaching again to the same node in the same way succeeds.
	//
	// Kinds: NotFound for the volume or the node; InUse, naming the other node, when the volume is
	// attached elsewhere and may be attached once only; Exists when it is attached here in another way
	// (read-only or not); Invalid when Access.Check of the volume's Access says that it cannot be used in the ways of
	// the request; Exhausted when the node's attach limit is reached.
	Attach(ctx context.Context, request AttachRequest) (attributes map[string]string, err error)

	// Detach undoes Attach and returns once the node has lost the volume. With an empty node it detaches
	// the volume from every node. A volume that is not attached there is detached: no error.
	//
	// Kinds: NotFound when there is no such volume.
	Detach(ctx context.Context, handle, node string) error
}

// Expander makes volumes larger, also while they are in use.
type Expander interface {
	// Expand grows the volume to a size in the range. A volume that is large enough already is left as
	// it is. Kinds: NotFound; Unusable; OutOfRange when the range cannot be met; Exhausted when there is no room now.
	Expand(ctx context.Context, handle string, size CapacityRange) (Expansion, error)
}

// Cloner makes a volume with the contents of another.
type Cloner interface {
	// Clone is Create with the data that the source volume holds at some instant between call and
	// return. The clone is independent: the source may be deleted afterwards.
	//
	// The clone is at least as large as its source, whatever less is required. Kinds: as Create; NotFound when the source
	// is not there, and Unusable when it cannot be read now; OutOfRange when the range's limit is below the source's size;
	// InUse when the source's present use rules out a consistent copy.
	Clone(ctx context.Context, spec Spec, source string) (*Volume, error)
}

// Modifier changes a volume's mutable parameters (VolumeAttributesClass) while it is in use.
type Modifier interface {
	// Modify sets the parameters that the value sets and leaves the others. The value is what Definition.NewMutable
	// returned, filled in. Expand may be called for the same volume at the same time, so that a cloud can be asked for
	// both at once. Kinds: NotFound; Unusable; Invalid when the volume cannot have it.
	Modify(ctx context.Context, handle string, mutable any) error
}

// Prover proves that a volume or a snapshot does not exist. Nothing in CSI does: a refusal speaks of one request, and
// earlier ones for the same name may have made it, or make it yet. A proof is of where the Spec leads as this process
// is configured: another Spec may lead elsewhere, and so may the same one under another configuration, where something
// may have the name.
type Prover interface {
	// IsAbsent reports whether there is no volume of the Spec's name in any place that the Spec allows, and none can
	// come there of a call that was made before, to this process or to another. A Spec whose parameters name the place
	// allows no other, whatever its topology. It is false where that is not known, such as of storage on which this
	// process has made or found nothing yet. The caller sees to it that no call for the name is under way in this
	// process, whatever the call's Spec.
	IsAbsent(ctx context.Context, spec Spec) bool

	// IsSnapshotAbsent reports the same of a snapshot, where those of the Spec's volume are.
	IsSnapshotAbsent(ctx context.Context, spec SnapshotSpec) bool

	// IsGroupAbsent reports the same of a group of snapshots, where those of the Spec's volumes are.
	IsGroupAbsent(ctx context.Context, spec GroupSpec) bool
}

// Lister enumerates volumes.
type Lister interface {
	// List returns volumes in a stable order. A page begins after the last entry of the previous one, also when that entry
	// is gone by now; a volume that exists during the whole enumeration is returned once. One that cannot be used now is
	// returned with its handle and as much else as is known.
	//
	// Kinds: Busy for a token that List did not give out (CSI asks for ABORTED: start again).
	List(ctx context.Context, page Page) (volumes []Volume, next string, err error)
}

// CapacityReporter tells how much more can be provisioned.
type CapacityReporter interface {
	// Capacity answers for volumes like those that the query describes. A place or parameters that this
	// backend cannot serve have a capacity of zero, without an error.
	Capacity(ctx context.Context, query CapacityQuery) (Capacity, error)
}

// HealthReporter tells what is wrong with volumes, seen from the controller.
type HealthReporter interface {
	// Health returns what is wrong with the volume now; nothing when it is well. For one that others call Unusable it says
	// why. Kinds: NotFound.
	Health(ctx context.Context, handle string) ([]HealthIssue, error)

	// ListHealth enumerates, as Lister does, the volumes that are not well.
	ListHealth(ctx context.Context, page Page) (unwell []VolumeHealth, next string, err error)
}

// MachineReporter tells what is true of the machines that nodes are.
type MachineReporter interface {
	// Machine returns what the storage's provider says of the machine now. Stopped and Terminated are said only when the
	// provider says so of this very machine: what may have been stopped, is being stopped, or cannot be found is not.
	//
	// Kinds: NotFound when the provider knows no such machine; Invalid when the query names none, or two different ones;
	// Denied; Unavailable.
	Machine(ctx context.Context, query MachineQuery) (Machine, error)
}

// PoolReporter tells of the pools that volumes are taken from, for a master that chooses between nodes.
type PoolReporter interface {
	// Pools returns the pools of the configuration in its order, also those that cannot be used now.
	Pools(ctx context.Context) ([]Pool, error)
}

// Topologist is a backend whose volumes cannot be reached from everywhere. Spec.Topology,
// Volume.Topology and Snapshot.Topology mean nothing without it.
type Topologist interface {
	// TopologyKeys are the keys of the segments that the backend understands.
	TopologyKeys() []string
}

// Releaser is told when a node no longer uses a volume. A backend that is no Attacher and describes a Device
// or a Directory has to be one: nothing else tells Delete that a volume is in use.
type Releaser interface {
	// Used reports whether the volume is noted as in use: by Source, since the last Release. It is true where that cannot
	// be told, false of a volume that there is not, and need not look at the storage.
	Used(ctx context.Context, handle string) bool

	// Release is called after the last unmount of what Source described, and may be called again or without a preceding
	// Source. A volume that is gone or Unusable is released: no error. Release needs no room, and ends on storage that
	// cannot be written to.
	Release(ctx context.Context, handle string) error
}

// Limiter knows how many volumes a node can have attached.
type Limiter interface {
	// Limit is the number of volumes that may be attached to this node; 0 means no limit is known.
	Limit(ctx context.Context) (int64, error)
}

// Inspector tells what is wrong with the storage, seen from this node.
type Inspector interface {
	// Inspect returns what is wrong now; nothing when all is well.
	Inspect(ctx context.Context) ([]StorageIssue, error)
}

// Locator knows where this node is.
type Locator interface {
	// Topology returns the node's segments, one for each of Topologist's keys.
	Topology(ctx context.Context) (Topology, error)
}
