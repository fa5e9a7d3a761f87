// Package ownership gives the files of a volume to a group, as the kubelet does for a pod's fsGroup.
//
// The rules are the kubelet's (kubernetes pkg/volume/volume_linux.go), so that a pod sees no difference. Every entry
// gets the group, and so do symlinks themselves. Everything but symlinks becomes readable and writable for the group.
// Directories also get the group's execute bit and setgid, so that new files inherit the group. Bits are only ever
// added. An entry that cannot be changed (immutable, in a read-only snapshot, or squashed by a file server) is skipped.
// The root comes last, so that a root that looks right stands for a completed walk.
//
// The implementation differs. Directories are accessed by descriptors and their entries by plain names, never by paths,
// and no symlink is followed. So nothing that is renamed or replaced meanwhile leads the walk out of the volume, and
// mounts inside it are left alone. If others may change the files at the same time, each file is held by a descriptor
// from its inspection to its change. Entries that are right are only inspected. Several workers share the walk, and a
// directory is read in batches, so that memory does not grow with it. An extended attribute on the root (xattr(7),
// "trusted") names the group that was begun or completed. It shows that a walk was cut short even if the root looks
// right. docs/design/009 has the numbers.
package ownership
