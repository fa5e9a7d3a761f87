// Package volumeworker creates the LocalVolumes of a node (docs/design/019-local-volumes.md).
//
// It calls the node's own driver through its CSI socket, as sidecars do, and reports the answers in the status of the
// LocalVolumes, LocalSnapshots and LocalSnapshotGroups. If the master asks, it also reports whether the node uses a
// volume. Besides these it only writes the pools in the status of the node's NodeStorage. Repeated work is idempotent,
// because CSI calls are. Before each call it reads the object past its cache, since an old object's request may have
// been withdrawn.
package volumeworker
