// Package discovery finds the disks, partitions and mount points of a node that its configuration selects, and says for
// each whether it could be offered.
//
// config.go has the rules, which are strict: an unknown key or value is an error. blocks.go reads the kernel's
// description of block devices, mounts.go the mounts, and place.go their places; select.go applies the rules to both.
// look.go opens what was selected, to prove its identity, that it is not in use, and that it is blank. family.go,
// below.go and contents.go name the volumes that share bytes with another one: a disk, its partitions, and the
// filesystems on them. watch.go reports events after which it is worth looking again.
//
// A volume's name is a digest of its identity: of the identifiers that the disk reports, or of the filesystem's UUID.
// Two volumes with the same identity are both unusable.
package discovery
