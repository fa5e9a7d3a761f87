// Package nodestorage is the master of found disks: it offers the local volumes that workers find as PersistentVolumes,
// asks for them to be wiped once they are released, and is the only one who writes PersistentVolumes
// (docs/design/018-node-storage.md).
//
// # Files
//
// rules.go and class.go say what the master believes of a worker's report, and which class a volume is of. plan.go,
// offers.go, unborn.go, object.go, places.go, hostname.go and strays.go decide, and are pure. reconcile.go reads the
// world, carryout.go writes, older.go goes on beside what an older definition refuses, births.go remembers which
// PersistentVolumes are to be made, volume.go makes them, silence.go notices workers that do not run, and manager.go
// has the watches.
//
// # What makes it safe
//
//   - An offer is written under the resource version that was read, before its PersistentVolume. Names of
//     PersistentVolumes are random.
//   - A PersistentVolume is made when the worker has found its volume free after it heard of the offer.
//   - An offer without its PersistentVolume is a volume that may hold data. Absence counts once it was read past the
//     cache.
//   - The id of a deletion names the object after whose end it wipes: what was wiped before that is no proof.
//   - No two volumes are offered at one path, and none is wiped at a path at which another is offered.
//   - A volume is wiped while its PersistentVolume is being deleted and names a claim that is gone, so that nothing can
//     be bound to it.
package nodestorage
