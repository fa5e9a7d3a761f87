// Package ownership gives the files of a volume to a group, as the kubelet does for a pod's fsGroup.
//
// The rules are the kubelet's (kubernetes pkg/volume/volume_linux.go), so that it makes no difference to
// a pod who applied them: every entry's group is set, symlinks' own too; everything but symlinks becomes
// readable and writable for the group; directories also get the group's execute bit and setgid, so that
// new files inherit the group. Bits are only ever added. An entry that cannot be changed (immutable, or
// squashed by a file server) is passed over. The root comes last, so that a root that looks right stands
// for a walk that ended.
//
// What differs is how. Directories are reached by descriptors and what is in them by bare names, never by
// paths, and no symlink is followed: nothing that is renamed or replaced meanwhile leads the walk out of the
// volume, and what is mounted inside it is left alone. Where others may change the files at the same
// time, each file is held by a descriptor from the look at it to its change. Entries that are right are
// only looked at. Several workers share the walk, and a directory is read in pieces, so that memory does
// not grow with it. An extended attribute on the root (xattr(7), "trusted") says which group was begun or
// completed: a walk that was cut short is known to have been, also where the root looks right. docs/design/009
// has the numbers.
package ownership
