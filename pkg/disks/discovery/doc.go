// Package discovery finds the disks, partitions and mount points of a node that its configuration selects, and says of
// each whether it could be offered.
//
// config.go has the rules, which are strict: a key or a value that means nothing is an error. blocks.go reads what the
// kernel tells of block devices, mounts.go what is mounted, and place.go where; select.go holds both against the rules;
// look.go opens what was selected, to prove its identity, that nobody uses it, and that it is blank. watch.go tells
// when it is worth the while to look again.
//
// A volume's name is a digest of its identity: of what the disk reports of itself, or of the filesystem's UUID. Two
// that report the same are both unusable.
package discovery
