// Package nfs keeps volumes as directories of what NFS servers export.
//
// The controller mounts a share, works in it, and lets it go when it is idle; package share has that, and what it does about
// servers that do not answer. A node mounts the directory of one volume.
//
// # On the share
//
// Everything that the driver knows is on the share itself, in a directory that no pod's mount reaches, so that controllers
// keep nothing and any of them can go on where another was killed:
//
//	.stowage/share.json                   the share's identity
//	.stowage/key                          the key of its IDs, which nodes need not be able to read
//	.stowage/volumes/<id>.json            the record of a volume that is there
//	.stowage/snapshots/<id>.json          that of a snapshot; its data is in snapshots/<id>-<turn>/
//	.stowage/groups/<id>.json             that of a group of snapshots, each of which has its own and is there while this one is
//	.stowage/making/<kind>-<id>.json      the record of what is being made; its data is in staging/<id>-<turn>/
//	.stowage/trash/<id>-<turn>.json       the record of what is being removed, with its data beside it
//	.stowage/retained/<id>-<turn>.json    the record of a deleted volume whose directory was left where it is
//	.stowage/claims/<hash of a path>      a symbolic link that names the volume to which the directory belongs
//	<subDir>                              the data of a volume
//
// An ID is a keyed hash of the name: the same name leads to the same ID on the same share, and nobody can compute that of
// another's volume. A handle says the share, its identity and the ID; whatever else comes from outside is not believed.
//
// # Making and removing
//
// The draft of the data is made in staging; then the record in making, exclusively, which takes the name; then the claim on the
// directory, exclusively; then the data is moved to its place, and last the record to volumes, by which the volume is
// there. A call that is repeated, by whichever process, goes on after the last step that was done. Removing is the other way
// round: the record goes to trash, by which the volume is gone, then the directory, and then the claim is dropped; a
// janitor removes what is in trash. The snapshots of a group are made one after the other, each as its volume was when the group was
// begun, by the server's clock; the group's record comes last, and goes first. Each step is one call that the server does as a whole. None relies on O_EXCL or
// RENAME_NOREPLACE, which not all versions have, nor on locks.
package nfs
