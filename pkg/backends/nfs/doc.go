// Package nfs keeps volumes as directories of what NFS servers export.
//
// The controller mounts a share, works in it, and lets it go when it is idle; package share has that, and what it does
// about servers that do not answer. A node mounts the directory of one volume.
//
// # On the share
//
// Everything that the driver knows is on the share itself, in a directory that no pod's mount reaches, so that
// controllers keep nothing and any of them can go on where another was killed:
//
//	.stowage/share.json                   the share's identity
//	.stowage/key                          the key of its IDs, which nodes need not be able to read
//	.stowage/volumes/<id>.json            the record of a volume that is there
//	.stowage/snapshots/<id>.json          that of a snapshot; its data is in snapshots/<id>-<turn>/
//	.stowage/groups/<id>.json             that of a group of snapshots, each of which has its own, for as long
//	.stowage/staging/<id>-<turn>.json     the token of an attempt: the record that will be, with its data beside it
//	.stowage/staging/<id>-<turn>.box-<n>/ what somebody just takes from its place: see box
//	.stowage/staging/same.<number>        a mark, which shows whether two addresses lead to this share
//	.stowage/making/                      what an earlier version of the driver was making
//	.stowage/burials/<id>.buried-...      a record on its way to the trash, whose it is nobody has looked yet: see lay
//	.stowage/trash/<id>-<turn>.json       the record of what is being removed, with its data beside it
//	.stowage/retained/<id>-<turn>.json    the record of a deleted volume whose directory was left where it is
//	.stowage/controllers/<name>           a controller's permit for a class of calls: see permits
//	.stowage/claims/<hash of a path>      a symbolic link that names the volume to which the directory belongs
//	<subDir>                              the data of a volume
//
// An ID is a keyed hash of the name: the same name leads to the same ID on the same share, and nobody can compute that
// of another's volume. A handle says the share, its identity and the ID; whatever else comes from outside is not
// believed.
//
// # Making and removing
//
// Every attempt has a token and a draft of its own in staging, under a number that nobody uses again. When the draft is
// whole, and the directory is claimed, one link gives the token its name among the records, by which the volume is
// there; then the data is moved to its place. The link is exclusive, so that of several attempts one wins. And it fails
// for who has lost the token: who begins a later attempt, or deletes, removes the tokens of all earlier ones first. So
// a controller that was stopped at any instant and goes on when others have taken over can touch nothing but its own
// draft. The moves after the link can be done once only, since each takes a name away that does not come back: whoever
// finds them undone does them. An attempt is alive while its token is touched; a janitor removes the tokens that have
// not been for long, by its own clock, and drafts without one.
//
// A token is made of the controller's permit, by one rename. Who is called takes the permits of all other controllers
// away first, for calls of the same class. So one that hears of a call when others have done it, and have deleted what
// came of it, turns it away: see permits.
//
// A copy belongs to the process that makes it, goes on when the call that began it has ended, and is found by the next.
// It is of one instant, and whole: changes of the source, and its deletion, are noticed at the end at the latest. The
// snapshots of a group are copied one after the other, each as its volume was when the first was begun; the group's
// record shows them all.
//
// Removing is the other way round: the record goes by way of burials to trash, by which the volume is gone, then the
// directory, and then the claim is dropped; a janitor removes what is in trash. Nothing needs to be written for that.
// Each step is one call that the server does as a whole. None relies on O_EXCL or RENAME_NOREPLACE, which not all
// versions have, nor on locks.
package nfs
