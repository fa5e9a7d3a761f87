package backends

import (
	"context"
	"time"
)

// Snapshotter preserves the contents of a volume at an instant. Its methods mirror Backend's.
type Snapshotter interface {
	// CreateSnapshot takes a snapshot of a volume, which may be in use. If a snapshot of that name exists, of whichever
	// volume, it changes nothing and fails with Exists.
	//
	// Kinds: Exists; NotFound for the volume; Unusable for either; InUse when the volume's present use rules out a
	// consistent snapshot; Exhausted when there is no room for it. csi-snapshotter treats Exhausted as final: neither this
	// call nor an earlier one has created the snapshot, or will create it. If that is not certain, the Kind is Busy or
	// Unavailable.
	CreateSnapshot(ctx context.Context, spec SnapshotSpec) (*Snapshot, error)

	// FindSnapshot returns the snapshot that CreateSnapshot made under the spec's name. The rest of the spec only
	// determines where to look, as in Backend.Find. Kinds: NotFound; Unusable; Exists for one that failed after callers
	// were told of it: it keeps its name until it is deleted.
	FindSnapshot(ctx context.Context, spec SnapshotSpec) (*Snapshot, error)

	// GetSnapshot returns the snapshot with the handle, even if it is a member of a group. Kinds: NotFound; Unusable.
	GetSnapshot(ctx context.Context, handle string) (*Snapshot, error)

	// DeleteSnapshot removes a snapshot; volumes restored from it are not touched. Kinds: NotFound; Unusable; InUse for a
	// member of a group, which is only deleted with its group.
	DeleteSnapshot(ctx context.Context, handle string) error

	// Restore is Create with the contents of a snapshot. The volume is at least as large as the snapshot, even if less is
	// required. Kinds: as Create; NotFound when the snapshot is not there; Unusable; OutOfRange when the range's limit is
	// below the snapshot's size; Unavailable while the snapshot is not ready, Invalid when it never will be.
	Restore(ctx context.Context, spec Spec, snapshot string) (*Volume, error)
}

// SnapshotLister enumerates snapshots.
type SnapshotLister interface {
	// ListSnapshots enumerates as Lister.List does, including group members. With a volume handle it returns only that
	// volume's snapshots; an unknown volume has none. A snapshot that cannot be used now is omitted if its volume is
	// unknown, or the list fails with Unavailable.
	ListSnapshots(ctx context.Context, volume string, page Page) (snapshots []Snapshot, next string, err error)
}

// GroupSnapshotter takes snapshots of several volumes at one instant. Its methods mirror Backend's.
type GroupSnapshotter interface {
	// CreateGroup takes a snapshot of every volume at one instant: all of them exist afterwards, or none. If a group of
	// that name exists, it changes nothing and fails with Exists.
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

// SnapshotSpec describes the requested snapshot.
type SnapshotSpec struct {
	Name       string              // the orchestrator's name, unique for each snapshot
	Volume     string              // the source volume's handle
	Parameters any                 // what Definition.NewSnapshotParameters returned, filled in; nil without one
	Topology   TopologyRequirement // from where it must be usable
}

// Snapshot is a snapshot that exists.
type Snapshot struct {
	Handle    string
	Name      string
	Volume    string // the source volume's handle; the volume may be gone
	Group     string // the handle of its group; empty outside a group
	SizeBytes int64  // the minimum size in bytes of a volume restored from it
	CreatedAt time.Time
	Ready     bool // whether it can be restored now
	Topology  []Topology
}

// MostMembers is the maximum number of volumes in a group of snapshots. Neither CSI nor csi-snapshotter has a limit: a
// label selector selects every claim with the label, and all volumes are held still while their snapshots are taken.
// This many members fit into one record of nfs and into one LocalSnapshotGroup.
const MostMembers = 256

// GroupSpec describes the requested group of snapshots.
type GroupSpec struct {
	Name       string
	Volumes    []string // the source volumes' handles, at most MostMembers
	Parameters any      // what Definition.NewSnapshotParameters returned, filled in; nil without one
	// Fingerprint represents the parameters. The backend keeps it with the group and returns it in Group.
	Fingerprint string
}

// Group is a group of snapshots that exists.
type Group struct {
	Handle    string
	Name      string
	Snapshots []Snapshot // in the order of GroupSpec.Volumes
	CreatedAt time.Time
	// Fingerprint is GroupSpec.Fingerprint; empty if it is unknown.
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
