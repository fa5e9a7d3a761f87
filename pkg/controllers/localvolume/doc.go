// Package localvolume is the master of the local volumes of a cluster: a backend whose storage is the nodes
// (docs/design/019-local-volumes.md).
//
// It serves CSI behind the same edge as every backend. It creates no volume itself: it writes a LocalVolume that
// specifies the volume and its node, the worker of that node makes the node's own driver create it, and the master
// answers with the status. A call that ends before that is answered with Busy, and the next one finds the LocalVolume.
//
// Two masters may serve at a time. A volume name has one LocalVolume, whose own name is derived from it, and every
// change is written with the resource version that was read.
package localvolume
