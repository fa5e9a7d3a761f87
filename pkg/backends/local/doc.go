// Package local keeps volumes on this node's own filesystems.
//
// It is the backend of people who have disks and no storage system: one process, no cluster, no other daemon.
// A pool is a directory of some filesystem and has one of two types:
//
//   - directory: a volume is a directory, mounted into a pod as it is. Its size is a number that counts against the
//     room of the filesystem, which pools share; where the filesystem has project quotas it is enforced (package
//     quota), else nothing stops a pod from writing more. The volume's root belongs to root with mode 0755, as that of
//     a new filesystem does; the kubelet applies a pod's fsGroup. A snapshot or clone is a copy of the tree, which is
//     not of one instant while pods write to it: while the volume is in use it is refused, unless the snapshot's
//     parameters accept such a copy (inUse=copy). For the same reason there are no group snapshots of directories.
//   - image: a volume is a file that the node attaches as a loop device. Its size is enforced by nature, it can
//     be a raw block device, and a snapshot is of one instant: by reflink where the filesystem can (xfs,
//     btrfs), else by a copy while the filesystem on the image is frozen. On a reflink a full image shares its
//     blocks with its snapshot, and then needs new space for what is overwritten.
//
// # On disk
//
// Everything of a pool is in its directory, under the data directory or wherever the configuration says:
//
//	pool.json            what the pool is
//	lock                 keeps a second process out
//	volumes/<handle>/    record.json with data/ or image, and the notes in-use and frozen
//	snapshots/<handle>/  record.json with data/ or image
//	groups/<handle>/     record.json with <n>/image for each member
//	staging/             what is being made
//	trash/               what is being removed
//	retained/            deleted volumes with onDelete=retain, for an operator to find
//	quarantine/          what start-up could not make sense of
//
// The data directory has, beside the pools without a path of their own:
//
//	known/<pool>         what the pool is, to notice when another is in its place
//	held/<pool>/         an empty file for each handle that the pool may hold, and a link to the pool
//	in-use/<handle>      a note of what came into use while its pool had no room for the one in its folder
//	released/<handle>    a note of what went out of use while its pool could not be written to
//
// A handle is made from a hash of the name, so that no text from outside ever becomes a part of a path; and a
// handle that comes in is looked up in memory, never on disk.
//
// # What cannot be used now
//
// A pool that cannot be opened, or that the configuration names no more, stops itself only; so does a record that
// cannot be read, that is damaged, or that a newer version wrote. What it holds is Unusable: its handles are known from
// held/, so that none is forgotten or given out again. What is configured is tried again in the background. An
// administrator who gives a pool up names it under retired. A pool under another name is known by its identity. Two
// pools that hold one handle make it Unusable: nobody can tell which is meant.
//
// # Crashes
//
// Nothing is rewritten in place, and there is no log to replay. What is made is made in staging/ and moved
// into its place whole; what is deleted is moved into trash/ whole; a record that changes is replaced by a
// rename. Each of these is one atomic step that is durable before it is acknowledged. The one change with two
// steps, growing an image, is recorded before it begins. So start-up empties staging/ and trash/, finishes
// what was growing, thaws what was left frozen, and reports.
//
// # Long work
//
// A copy can take longer than a call. It outlives the call (package background), holds its source meanwhile, and the
// next call for the name waits for it and hears what became of it. A Delete by the handle that the name makes ends it,
// and so does Close; what it has made is trash then. A copy from a filesystem that is frozen is short, by freezeLimit.
//
// It needs Linux 5.14.
package local
