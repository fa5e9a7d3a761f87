package local

import "github.com/stowage-csi/stowage/pkg/backends"

// Handle is the handle that every node gives the volume of the name.
func Handle(name string) string { return handleOf(volumePrefix, name) }

// SnapshotHandle is the handle that every node gives the snapshot of the name.
func SnapshotHandle(name string) string { return handleOf(snapshotPrefix, name) }

// GroupHandle is the handle that every node gives the group of snapshots of the name.
func GroupHandle(name string) string { return handleOf(groupPrefix, name) }

// MemberHandle is the handle that every node gives the n-th snapshot of the group with the handle.
func MemberHandle(group string, n int) string { return memberHandle(group, n) }

// Access is all the ways in which volumes of a pool of the named type can be used, and none for a type that is not
// known.
func Access(name string) backends.Access {
	if t := poolType(name); t.isKnown() {
		return t.storage().access()
	}
	return backends.Access{}
}

// TopologyKey is the key of the one segment that a volume's place has: the node's ID.
func TopologyKey(driver string) string { return topologyKey(driver) }
