package local

import "github.com/stowage-csi/stowage/pkg/backends"

// Handle returns the handle that every node gives to a volume of this name.
func Handle(name string) string { return handleOf(volumePrefix, name) }

// SnapshotHandle returns the handle that every node gives to a snapshot of this name.
func SnapshotHandle(name string) string { return handleOf(snapshotPrefix, name) }

// GroupHandle returns the handle that every node gives to a group of snapshots of this name.
func GroupHandle(name string) string { return handleOf(groupPrefix, name) }

// MemberHandle returns the handle that every node gives to the n-th snapshot of the group.
func MemberHandle(group string, n int) string { return memberHandle(group, n) }

// Access returns all the ways to use volumes of a pool of the named type. It is empty for an unknown type.
func Access(name string) backends.Access {
	if t := poolType(name); t.isKnown() {
		return t.storage().access()
	}
	return backends.Access{}
}

// TopologyKey returns the key of the only segment in a volume's topology: the node's ID.
func TopologyKey(driver string) string { return topologyKey(driver) }
