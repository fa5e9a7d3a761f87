package backends

import (
	"context"
	"time"
)

// Snapshotter keeps the contents that a volume had at an instant. Its methods mirror Backend's.
type Snapshotter interface {
	// CreateSnapshot takes a snapshot of a volume, which may be in use. When a snapshot of that name
	// exists, of whichever volume, it changes nothing and fails with Exists.
	//
	// Kinds: Exists; NotFound for the volume; Unusable for either; InUse when the volume's present use rules out a
	// consistent snapshot; Exhausted when there is no room for it. csi-snapshotter takes that for final: neither this call
	// nor one before it has made the snapshot, nor will. Where that is not certain it is Busy or Unavailable.
	CreateSnapshot(ctx context.Context, spec SnapshotSpec) (*Snapshot, error)

	// FindSnapshot returns the snapshot that CreateSnapshot made under the spec's name. The rest of the spec only tells
	// where to look, as in Backend.Find. Kinds: NotFound; Unusable; Exists for one that failed after callers were told of
	// it: it keeps its name until it is deleted.
	FindSnapshot(ctx context.Context, spec SnapshotSpec) (*Snapshot, error)

	// GetSnapshot returns the snapshot with the handle, a group's member included. Kinds: NotFound; Unusable.
	GetSnapshot(ctx context.Context, handle string) (*Snapshot, error)

	// DeleteSnapshot removes a snapshot; volumes restored from it are not touched. Kinds: NotFound; Unusable; InUse
	// for a member of a group, which goes with its group only.
	DeleteSnapshot(ctx context.Context, handle string) error

	// Restore is Create with the contents of a snapshot. The volume is at least as large as the snapshot,
	// whatever less is required. Kinds: as Create; NotFound when the snapshot is not there; Unusable; OutOfRange when
	// the range's limit is below the snapshot's size; Unavailable while the snapshot is not ready, Invalid when it never
	// will be.
	Restore(ctx context.Context, spec Spec, snapshot string) (*Volume, error)
}

// SnapshotLister enumerates snapshots.
type SnapshotLister interface {
	// ListSnapshots enumerates as Lister.List does, group members included. With a volume handle it returns that volume's
	// snapshots only; an unknown volume has none. A snapshot that cannot be used now is left out where its volume is not
	// known.
	ListSnapshots(ctx context.Context, volume string, page Page) (snapshots []Snapshot, next string, err error)
}

// GroupSnapshotter takes snapshots of several volumes at one instant. Its methods mirror Backend's.
type GroupSnapshotter interface {
	// CreateGroup takes a snapshot of every volume at one instant: all of them exist afterwards, or none.
	// When a group of that name exists it changes nothing and fails with Exists.
	//
	// Kinds: as CreateSnapshot; InUse also for volumes that cannot be taken together as they are, such as those of two
	// pools; Invalid when a volume is named twice or none is named.
	CreateGroup(ctx context.Context, spec GroupSpec) (*Group, error)

	// FindGroup returns the group that CreateGroup made under the name. Kinds: NotFound; Unusable.
	FindGroup(ctx context.Context, name string) (*Group, error)

	// GetGroup returns the group with the handle. Kinds: NotFound; Unusable.
	GetGroup(ctx context.Context, handle string) (*Group, error)

	// DeleteGroup removes a group and all its snapshots. Kinds: NotFound; Unusable.
	DeleteGroup(ctx context.Context, handle string) error
}

// SnapshotSpec says which snapshot is wanted.
type SnapshotSpec struct {
	Name       string              // the orchestrator's name, unique for each snapshot
	Volume     string              // the source volume's handle
	Parameters any                 // what Definition.NewSnapshotParameters returned, filled in; nil without one
	Topology   TopologyRequirement // where it must be usable from
}

// Snapshot is a snapshot that exists.
type Snapshot struct {
	Handle    string
	Name      string
	Volume    string // the source volume's handle, which may be gone by now
	Group     string // the handle of the group that it belongs to; empty outside one
	SizeBytes int64  // the least size in bytes of a volume restored from it
	CreatedAt time.Time
	Ready     bool // whether it can be restored now
	Topology  []Topology
}

// MostMembers is how many volumes a group of snapshots has at most. Neither CSI nor csi-snapshotter sets a bound: a
// label selector takes in whatever bears the label, and all volumes are held still while their snapshots are taken. So
// many fit into one record of nfs and into one LocalSnapshotGroup.
const MostMembers = 256

// GroupSpec says which group of snapshots is wanted.
type GroupSpec struct {
	Name       string
	Volumes    []string // the source volumes' handles, at most MostMembers
	Parameters any      // what Definition.NewSnapshotParameters returned, filled in; nil without one
	// Fingerprint stands for the parameters. The backend keeps it with the group and returns it in Group.
	Fingerprint string
}

// Group is a group of snapshots that exists.
type Group struct {
	Handle    string
	Name      string
	Snapshots []Snapshot // in the order of GroupSpec.Volumes
	CreatedAt time.Time
	// Fingerprint is GroupSpec.Fingerprint; empty when it is not known.
	Fingerprint string
}

// Ready reports whether every snapshot of the group can be restored now.
func (g Group) Ready() bool {
	for _, s := range g.Snapshots {
		if !s.Ready {
			return false
		}
	}
	return true
}
