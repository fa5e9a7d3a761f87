package local

import "github.com/stowage-csi/stowage/pkg/backends"

// Handle is the handle that every node gives the volume of the name.
func Handle(name string) string { return handleOf(volumePrefix, name) }

// SnapshotHandle is the handle that every node gives the snapshot of the name.
func SnapshotHandle(name string) string { return handleOf(snapshotPrefix, name) }

// Access is all the ways in which volumes of a pool of the named type can be used, and none for a type that is not
// known.
func Access(name string) backends.Access {
	switch kind := poolType(name); kind {
	case directory, image:
		return kind.access()
	}
	return backends.Access{}
}

// TopologyKey is the key of the one segment that a volume's place has: the node's ID.
func TopologyKey(driver string) string { return topologyKey(driver) }
