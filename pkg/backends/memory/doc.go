// Package memory is the reference backend: it offers everything that the contract has, on next to no
// storage, so that the layers above can be tested for real and a new backend has something to copy.
//
// What exists is kept in tables in memory, under one mutex, and is gone with the process. The bytes of a
// volume are files below Options.DataDir, so that a node can mount them: a directory for those who want
// a filesystem and a sparse image for those who want a block device. Both are made for every volume.
//
// To write a backend, copy this folder and replace what is memory's own:
//
//   - definition.go and params.go say what can be configured and asked for;
//   - volume.go has the required methods; attach.go, expand.go, snapshot.go, group.go, list.go,
//     capacity.go and health.go have one optional interface each; node.go is the node's side;
//   - table.go stands where other backends have their storage's own records. Those must outlive the
//     process, which these do not: it is the one promise of the contract that memory cannot keep;
//   - files.go and copier.go are the storage.
//
// Three habits are worth keeping. A name is reserved before anything is made for it, so that of many
// concurrent calls one goes on. Work that takes time is done outside the lock and is then either
// recorded or undone, never left half-made. And handles are random: a handle that never comes back
// cannot make a late call for a deleted volume hit a namesake that was made since.
package memory
