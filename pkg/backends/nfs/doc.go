// Package nfs keeps volumes as directories of the exports of NFS servers.
//
// The controller mounts a share, works in it, and unmounts it when it is idle. Package share does that, and handles
// servers that do not answer. A node mounts the directory of one volume.
//
// # On the share
//
// All state of the driver is on the share itself, in a directory that no pod's mount reaches. So controllers keep no
// state, and any of them can continue where another was killed:
//
//	.stowage/share.json                   the share's identity
//	.stowage/key                          the key of its IDs, which nodes need not be able to read
//	.stowage/volumes/<id>.json            the record of an existing volume
//	.stowage/snapshots/<id>.json          the record of a snapshot; its data is in snapshots/<id>-<turn>/
//	.stowage/groups/<id>.json             the record of a group, without which its snapshots' records do not count
//	.stowage/staging/<id>-<turn>.json     the token of an attempt: the future record, with its data beside it
//	.stowage/staging/<id>-<turn>.box-<n>/ entries that a process is just taking from their place: see box
//	.stowage/staging/<id>-<turn>.mode     mode and inode of a directory that is just moving to its place: see moveIn
//	.stowage/staging/same.<number>        a mark, which shows whether two addresses lead to this share
//	.stowage/making/                      unfinished items of an earlier version of the driver
//	.stowage/burials/<id>.buried-...      a record on its way to the trash, before its owner is checked: see lay
//	.stowage/trash/<id>-<turn>.json       the record of an item that is being removed, with its data beside it
//	.stowage/retained/<id>-<turn>.json    the record of a deleted volume whose directory was left in place
//	.stowage/controllers/<name>           a controller's permit for a class of calls: see permits
//	.stowage/claims/<hash of a path>      a symbolic link that names the volume that owns the directory
//	<subDir>                              the data of a volume
//
// An ID is a keyed hash of the name: the same name has the same ID on the same share, and the ID of another user's
// volume cannot be computed. A handle contains the share, its identity and the ID. The driver trusts no other input
// from outside.
//
// # Creating and removing
//
// Every attempt has its own token and draft in staging, under a number that is never used again. When the draft is
// complete, and the directory is claimed, one link gives the token its name among the records, and then the volume
// exists. After that the data is moved to its place. The link is exclusive, so that only one of several attempts wins.
// It also fails for an attempt that has lost its token: a later attempt, or a deletion, first removes the tokens of all
// earlier attempts. So a controller that was stopped at any instant, and resumes after others have taken over, can only
// touch its own draft. Each move after the link can be done only once, because its source name never comes back: any
// controller that finds a move undone does it. An attempt is alive while its token is touched. A janitor removes tokens
// that were not touched for long, by its own clock, and drafts without a token.
//
// A token is made from the controller's permit, by one rename. A controller that is called first removes the permits of
// all other controllers, for calls of the same class. So if a controller receives a call after others have done it, and
// have deleted the result, it turns the call away: see permits.
//
// A copy belongs to the process that makes it. It continues after the call that began it has ended, and the next call
// finds it. It is complete and of one instant: changes of the source, and its deletion, are noticed at the end at the
// latest. The snapshots of a group are copied one after the other, each with the contents of its volume when the first
// copy began. The group's record shows them all at once.
//
// Removing is the reverse: the record moves by way of burials to trash, and then the volume is gone. Then the directory
// follows, and then the claim is dropped. A janitor empties the trash. This needs no writing. Each step is one call
// that is atomic on the server. No step relies on O_EXCL or RENAME_NOREPLACE, which not all versions have, nor on
// locks.
package nfs
