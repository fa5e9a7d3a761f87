// Package nodestorage is the master of found disks: it offers the local volumes that workers find as PersistentVolumes,
// requests wipes of released volumes, and is the only writer of these PersistentVolumes
// (docs/design/018-node-storage.md).
//
// # Files
//
// rules.go checks a worker's report, and class.go finds the class of a volume. plan.go, offers.go, unborn.go,
// object.go, places.go, hostname.go and strays.go decide, and are pure. reconcile.go reads the objects, carryout.go
// writes, older.go handles the refusals of an older CRD, births.go remembers which PersistentVolumes must be created,
// volume.go builds them, silence.go detects workers that do not run, and manager.go has the watches.
//
// # What makes it safe
//
//   - An offer is written with the resource version that was read, before its PersistentVolume. Names of
//     PersistentVolumes are random.
//   - A PersistentVolume is created when the worker has seen the offer and then found the volume free.
//   - An offer without a PersistentVolume means that the volume may hold data. Absence must be confirmed by a live
//     read.
//   - The ID of a deletion names the object whose deletion it follows: an earlier wipe is no proof.
//   - No two volumes are offered at the same path, and no volume is wiped at the path of another's offer.
//   - A volume is wiped while its PersistentVolume is being deleted and names a claim that is gone, so that no claim
//     can be bound to it. An offer without a PersistentVolume gets one for that: it keeps its name from a master that
//     creates it late.
package nodestorage
