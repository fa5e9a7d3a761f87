package backends

import "context"

// Backend creates and deletes volumes on one kind of storage. It is required.
type Backend interface {
	// Create creates an empty volume. If a volume of that name exists, in whatever form, Create changes nothing and fails
	// with Exists: the caller compares it with the Spec.
	//
	// Kinds: Exists; Invalid for a Spec that can never be met; OutOfRange when the capacity range cannot be met; Exhausted
	// when there is no room now, or no place that the topology allows; NotFound when something that the Spec names does
	// not exist; Unusable when a volume of that name exists, or may exist, but cannot be used now. Unusable and Exists
	// take precedence over all others.
	Create(ctx context.Context, spec Spec) (*Volume, error)

	// Find returns the volume that Create created under the Spec's name. The rest of the Spec only says where to look, for
	// a backend that keeps volumes in several places: the volume need not match the Spec. Kinds: NotFound; Unusable.
	Find(ctx context.Context, spec Spec) (*Volume, error)

	// Get returns the volume with the handle. A handle that the backend can never have returned is NotFound too: the
	// handle's text must not be trusted. Kinds: NotFound; Unusable.
	Get(ctx context.Context, handle string) (*Volume, error)

	// Delete removes the volume and its data. Kinds: NotFound when there is none; Unusable when there is, or may
	// be, and it cannot be removed now; InUse when something else depends on it, or when it is in use as far as
	// the backend can know:
	//
	//   - An Attacher knows the nodes that the volume is attached to: it is InUse until it is detached.
	//   - A Releaser knows only the use by this node: it is InUse from Source to Release.
	//   - A backend that is neither knows no use. This is only for an Export, which any client can mount
	//     without telling the backend: the caller of Delete has unmounted it everywhere. If the controller
	//     and a node are one process, package driver refuses to delete a volume that the node has staged
	//     or published.
	Delete(ctx context.Context, handle string) error
}

// NodeBackend tells the node where a volume's data is. It is required.
type NodeBackend interface {
	// Source describes the mount of an attached volume. It neither mounts nor changes anything that the volume's user
	// could see. It may be called again for the same attachment. A backend that is also a Releaser may note that the
	// volume is in use from now on.
	//
	// Kinds: NotFound when there is no such volume; Unusable; Unsupported for an access type that the volume does not have
	// (Access.CheckStaged), as far as the node knows; Invalid when the attachment lacks what Attach returns; Unavailable
	// when it cannot be reached yet, and when a node that sees only its attached volumes cannot tell whether the volume
	// exists.
	Source(ctx context.Context, attachment Attachment) (Source, error)
}

// Attacher connects volumes to nodes. A backend without it needs no attach step.
type Attacher interface {
	// Attach makes the volume reachable from the node and returns once it is. The attributes reach the node in
	// Attachment.Attributes. Attaching again to the same node in the same way succeeds.
	//
	// Kinds: NotFound for the volume or the node; InUse, naming the other node, when the volume is attached elsewhere and
	// may be attached once only; Exists when it is attached here in another way (read-only or not); Invalid when
	// Access.Check of the volume's Access says that it cannot be used in the ways of the request; Exhausted when the
	// node's attach limit is reached.
	Attach(ctx context.Context, request AttachRequest) (attributes map[string]string, err error)

	// Detach undoes Attach and returns once the node has lost the volume. With an empty node it detaches the volume from
	// every node. Detaching a volume that is not attached there is no error.
	//
	// Kinds: NotFound when there is no such volume.
	Detach(ctx context.Context, handle, node string) error
}

// Expander makes volumes larger, even while they are in use.
type Expander interface {
	// Expand grows the volume to a size in the range. A volume that is large enough already stays as it is. Kinds:
	// NotFound; Unusable; OutOfRange when the range cannot be met; Exhausted when there is no room now.
	Expand(ctx context.Context, handle string, size CapacityRange) (Expansion, error)
}

// Cloner creates a volume with the contents of another.
type Cloner interface {
	// Clone is Create with the data that the source volume holds at some instant between call and return. The clone is
	// independent: the source may be deleted afterwards.
	//
	// The clone is at least as large as its source, even if less is required. Kinds: as Create; NotFound when the source
	// does not exist, and Unusable when it cannot be read now; OutOfRange when the range's limit is below the source's
	// size; InUse when the source's present use rules out a consistent copy.
	Clone(ctx context.Context, spec Spec, source string) (*Volume, error)
}

// Modifier changes a volume's mutable parameters (VolumeAttributesClass) while it is in use.
type Modifier interface {
	// Modify sets the parameters that the value sets and leaves the others. The value is what Definition.NewMutable
	// returned, filled in. Expand may be called for the same volume at the same time, so that both can be one request to a
	// cloud. Kinds: NotFound; Unusable; Invalid when the volume cannot have it.
	Modify(ctx context.Context, handle string, mutable any) error
}

// Prover proves that a volume or a snapshot does not exist. CSI has no such proof: a refusal is about one request, and
// earlier ones for the same name may have created it, or may still create it. A proof holds for the place that the Spec
// names under this process's configuration. Another Spec may lead elsewhere, and so may the same Spec under another
// configuration, where the name may be taken.
type Prover interface {
	// IsAbsent reports whether no place that the Spec allows has a volume of the Spec's name, and no earlier call, to this
	// process or to another, will create one there. A Spec whose parameters name the place allows no other, whatever its
	// topology. It returns false if that is unknown, for example for storage on which this process has created or found
	// nothing yet. The caller ensures that no call for the name is under way in this process, whatever the call's Spec.
	IsAbsent(ctx context.Context, spec Spec) bool

	// IsSnapshotAbsent reports the same for a snapshot, in the place of the snapshots of the Spec's volume.
	IsSnapshotAbsent(ctx context.Context, spec SnapshotSpec) bool

	// IsGroupAbsent reports the same for a group of snapshots, in the place of the groups of the Spec's volumes.
	IsGroupAbsent(ctx context.Context, spec GroupSpec) bool
}

// Lister enumerates volumes.
type Lister interface {
	// List returns volumes in a stable order. A page begins after the last entry of the previous one, even if that entry
	// is gone by now; a volume that exists during the whole enumeration is returned once. A volume that cannot be used now
	// is returned with its handle and all other known fields.
	//
	// Kinds: Busy for a token that List did not return (CSI asks for ABORTED: start again).
	List(ctx context.Context, page Page) (volumes []Volume, next string, err error)
}

// CapacityReporter reports how much more can be provisioned.
type CapacityReporter interface {
	// Capacity returns the capacity for volumes like those that the query describes. A place or parameters that this
	// backend cannot serve have a capacity of zero, without an error.
	Capacity(ctx context.Context, query CapacityQuery) (Capacity, error)
}

// HealthReporter reports the issues of volumes, as seen from the controller.
type HealthReporter interface {
	// Health returns the volume's current issues; none if it is well. For a volume that other methods call Unusable it
	// returns the reason. Kinds: NotFound.
	Health(ctx context.Context, handle string) ([]HealthIssue, error)

	// ListHealth enumerates, as Lister does, the volumes that are not well.
	ListHealth(ctx context.Context, page Page) (unwell []VolumeHealth, next string, err error)
}

// MachineReporter reports the state of the nodes' machines.
type MachineReporter interface {
	// Machine returns what the storage's provider says of the machine now. Stopped and Terminated are set only when the
	// provider says so of this very machine. They are not set for a machine that may have been stopped, is being stopped,
	// or cannot be found.
	//
	// Kinds: NotFound when the provider knows no such machine; Invalid when the query names none, or two different ones;
	// Denied; Unavailable.
	Machine(ctx context.Context, query MachineQuery) (Machine, error)
}

// PoolReporter reports the pools of the volumes, for a master that chooses between nodes.
type PoolReporter interface {
	// Pools returns the pools of the configuration in its order, including those that cannot be used now.
	Pools(ctx context.Context) ([]Pool, error)
}

// Topologist is a backend whose volumes cannot be reached from everywhere. Spec.Topology,
// Volume.Topology and Snapshot.Topology mean nothing without it.
type Topologist interface {
	// TopologyKeys returns the keys of the segments that the backend understands.
	TopologyKeys() []string
}

// Releaser is told when a node no longer uses a volume. A backend that is not an Attacher and describes a Device or a
// Directory must be a Releaser: otherwise Delete cannot know that a volume is in use.
type Releaser interface {
	// Used reports whether the volume is noted as in use: by Source, since the last Release. It is true if that is
	// unknown, false for a volume that does not exist, and need not access the storage.
	Used(ctx context.Context, handle string) bool

	// Release is called after the last unmount of what Source described, and may be called again or without a preceding
	// Source. Releasing a volume that is gone or Unusable is no error. Release needs no room, and also ends on storage
	// that cannot be written to.
	Release(ctx context.Context, handle string) error
}

// Limiter knows how many volumes a node can have attached.
type Limiter interface {
	// Limit returns the maximum number of volumes that may be attached to this node; 0 means no limit is known.
	Limit(ctx context.Context) (int64, error)
}

// Inspector reports the issues of the storage, as seen from this node.
type Inspector interface {
	// Inspect returns the current issues; none if all is well.
	Inspect(ctx context.Context) ([]StorageIssue, error)
}

// Locator knows where this node is.
type Locator interface {
	// Topology returns the node's segments, one for each of Topologist's keys.
	Topology(ctx context.Context) (Topology, error)
}
