// Package localvolume is the master of the local volumes of a cluster: a backend whose storage is the nodes
// (docs/design/019-local-volumes.md).
//
// It serves CSI behind the same edge as every backend. It makes no volume: it writes a LocalVolume that says which one
// is wanted and where, the worker of that node has the node's own driver make it, and the master answers with the
// status. A call that ends before that is answered with Busy, and the next one finds the LocalVolume.
//
// Two masters may serve at a time. A name has one LocalVolume, whose name follows from it, and every change is written
// under the version that was read.
package localvolume
