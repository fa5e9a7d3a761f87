// Package local keeps volumes on this node's own filesystems.
//
// It is the backend for nodes with disks but no storage system: one process, no cluster, no other daemon. A pool is a
// directory on a filesystem and has one of two types:
//
//   - directory: a volume is a directory, mounted into a pod as it is. Its size is a number that counts against the
//     room of the filesystem, which pools share. If the filesystem has project quotas, the size is enforced (package
//     quota); otherwise a pod can write more. The volume's root belongs to root with mode 0755, like that of a new
//     filesystem; the kubelet applies a pod's fsGroup. A snapshot or clone is a copy of the tree. While pods write to
//     the volume, the copy does not show one instant, so it is refused while the volume is in use, unless the
//     snapshot's parameters accept such a copy (inUse=copy). For the same reason directories have no group snapshots.
//   - image: a volume is a file that the node attaches as a loop device. Its size is always enforced, it can be a raw
//     block device, and a snapshot shows one instant: by reflink if the filesystem supports it (xfs, btrfs), else by a
//     copy while the filesystem on the image is frozen. With reflink, a full image shares its blocks with its
//     snapshot, and then needs new space for each block that is overwritten.
//
// # On disk
//
// A pool keeps everything in its directory, under the data directory or at the configured path:
//
//	pool.json            the pool's identity
//	lock                 keeps a second process out
//	volumes/<handle>/    record.json with data/ or image, and the notes in-use and frozen
//	snapshots/<handle>/  record.json with data/ or image
//	groups/<handle>/     record.json with <n>/image for each member
//	staging/             items that are being created
//	trash/               items that are being removed
//	retained/            deleted volumes with onDelete=retain, for an operator to find
//	quarantine/          entries that start-up did not recognize
//
// The data directory has, besides the pools without a path of their own:
//
//	known/<pool>         the pool's identity, to notice when another pool is in its place
//	held/<pool>/         a file for each handle that the pool may hold, with its record if known, and a link to the pool
//	in-use/<handle>      a note that the volume came into use while its pool had no room for the note in its folder
//	released/<handle>    a note that the volume went out of use while its pool was not writable
//
// A handle is derived from a hash of the name, so text from outside never becomes part of a path. A handle from a
// request is looked up in memory, never on disk.
//
// # What cannot be used now
//
// A pool that cannot be opened, or that is no longer configured, affects no other pool. A record that cannot be read,
// is damaged, or was written by a newer version affects no other record. The items concerned are Unusable: held/ has
// their handles, so that none is forgotten or reused. Configured pools are retried in the background. To give a pool
// up, an administrator lists it under retired. A pool that was renamed is recognized by its identity. A handle that is
// in two pools is Unusable, because it is ambiguous.
//
// # Crashes
//
// Nothing is rewritten in place, and there is no log to replay. A new item is created in staging/ and then moved into
// its place; a deleted item is moved into trash/; a changed record is replaced by a rename. Each of these is one atomic
// step that is durable before it is acknowledged. The only change with two steps, growing an image, is recorded before
// it begins. So start-up empties staging/ and trash/, finishes growing images, thaws filesystems that were left frozen,
// and reports.
//
// # Long work
//
// A copy can take longer than a call. It outlives the call (package background) and holds its source meanwhile. The
// next call for the name waits for it and returns its outcome. Delete, with the handle that follows from the name, ends
// the copy, and so does Close; it is trash then. A copy from a frozen filesystem is short, because freezeLimit bounds
// it.
//
// The package needs Linux 5.14.
package local
