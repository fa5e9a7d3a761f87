// Package volumeset keeps PersistentVolumes ready for claims: the manager of PersistentVolumeSets.
//
// It counts the volumes that a set's selector matches, creates one while too few are unbound and fewer than the maximum
// exist, and deletes the largest unbound one while there are too many. It never touches a volume that is bound or being
// bound, one that it did not make, or one of policy Retain.
//
// # Files
//
// census.go counts, plan.go decides; both are pure. reconcile.go reads the world and carries the plan out: class.go
// finds the set's StorageClass, proof.go asks the API server whether it would take the PersistentVolumes, slots.go
// writes the intent to create a volume, fill.go fulfils it, progress.go remembers what is known of it, withdraw.go
// gives it up and chooses places, failures.go remembers what failed where, share.go keeps one set from having all
// workers, remove.go deletes a volume and undeleted.go tells why not. surplus.go waits before unbound volumes go that
// nobody asked for. classes.go says where claims may bind to unbound ones, for the policy that refuses clones there.
//
// # What makes it safe
//
//   - Intent before action. The name of a volume, and all else that the driver is asked for, stands in the set's status
//     before the driver is asked. Whoever leads next asks for the same volume. A slot goes once its PersistentVolume
//     has been made, or seen past the cache, or once it is proven that there is no volume: nobody has asked for it, or
//     the driver has refused the first request.
//   - New slots are decided on a list of volumes that is newer than the set, which the write then finds unchanged: each
//     volume is in the list, or has a slot.
//   - Names are random and never used twice, so that a manager which lost its lease and wakes in the middle of a call
//     can do no more than repeat what was done.
//   - A PersistentVolume is deleted under the resource version at which it was seen unbound. Kubernetes binds no volume
//     that is being deleted, and our finalizer keeps the object until the driver has deleted the volume.
//
// # How that is tested
//
// TestSimulation lets the manager live in worlds whose caches lag, and judges them by invariants. Each *.patch of
// plants/ puts a defect into a copy of the code that this is there to find; package tests/plants has their form.
//
//	go test ./pkg/controllers/volumeset                   200,000 steps, and whether all can be planted
//	go test ./pkg/controllers/volumeset -run TestSimulation -args -steps 12000000 -seed 1
//	go test ./pkg/controllers/volumeset -run TestPlants -v -args -plants     after how many steps each is found
package volumeset
