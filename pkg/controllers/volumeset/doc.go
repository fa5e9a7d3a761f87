// Package volumeset keeps PersistentVolumes ready for claims: the manager of PersistentVolumeSets.
//
// It counts the volumes that a set's selector matches. It creates volumes while too few are unbound and fewer than the
// maximum exist, and deletes the largest unbound ones while there are too many, as far as those that stay remain spread
// over the zones or nodes. It never touches a volume that is bound or being bound, that the set did not create, or that
// has the reclaim policy Retain.
//
// # Files
//
// census.go counts, plan.go decides, and spread.go chooses the volumes to delete; all three are pure. reconcile.go
// reads the objects and carries out the plan. class.go finds the set's StorageClass. proof.go asks the API server
// whether it would accept the PersistentVolumes, and altered.go whether they would count in the set. slots.go writes
// the intent to create a volume as a slot, fill.go creates the volume, progress.go remembers what is known of the slot,
// and withdraw.go gives slots up and chooses places. failures.go remembers failures by place. share.go keeps one set
// from occupying all workers. remove.go deletes a volume, slotted.go keeps its PersistentVolume until its slot is gone,
// reserved.go takes it from a claim that may never come, and undeleted.go reports why a deletion failed. surplus.go
// delays the deletion of surplus unbound volumes. classes.go records the classes in which claims may bind to unbound
// volumes, for the policy that refuses clones there. events.go records events of a set.
//
// # What makes it safe
//
//   - Intent before action. The name of a volume and all other fields of the request are in the set's status before the
//     driver is asked. The next leader asks for the same volume. A slot is removed once its PersistentVolume has been
//     created, or seen by a live read, or once no volume can exist: no request was sent, or the driver has refused the
//     first request or proven that no volume exists.
//   - A PersistentVolume has a finalizer of ours until its slot is gone or its volume is deleted. If there is none of
//     the name of a slot, the slot's volume therefore has no data of a claim.
//   - New slots are decided on a list of volumes that is newer than the set, and the write requires that the set is
//     unchanged. Each volume is therefore in the list or has a slot.
//   - Names are random and never reused. A manager that lost its lease and resumes in the middle of a call can
//     therefore only repeat a call that was made before. It begins no call by what it read seconds ago (fresh.go).
//   - A PersistentVolume is deleted with the resource version at which it was seen unbound. Kubernetes binds no volume
//     that is being deleted, and our finalizer keeps the object until the driver has deleted the volume.
//
// # How that is tested
//
// TestSimulation runs the manager in worlds whose caches lag, and checks invariants. Each *.patch file in plants/ adds
// a defect, which the simulation must find, to a copy of the code. Package tests/plants describes the format.
//
//	go test ./pkg/controllers/volumeset                   200,000 steps, and whether all can be planted
//	go test ./pkg/controllers/volumeset -run TestSimulation -args -steps 12000000 -seed 1
//	go test ./pkg/controllers/volumeset -run TestPlants -v -args -plants     after how many steps each is found
package volumeset
