// Package tree copies and removes directory trees that other users can change.
//
// A pod may change its volume while the driver walks it. It may replace a directory by a symbolic link to /etc or a
// file by a device, or mount a filesystem inside. So the package resolves only paths of one name, except in Unchanged.
// It opens every entry relative to an open directory with openat2(2), follows no link and crosses no mount. All further
// operations use the opened entry, so the entry that was checked is the one that is copied. Nothing outside the tree is
// read or removed.
//
// A copy keeps hard links, owners, modes, access control lists (POSIX and NFS 4) and other extended attributes, times,
// symbolic links, fifos, device nodes and holes, and shares blocks if the filesystem supports that. If the owner or
// list of a file cannot be kept, the copy fails, because it would give others access. Sockets are omitted: they are
// useless without the process that listens. A copy of a tree that is changed meanwhile is not of a single instant.
//
// It needs Linux 5.8 and /proc.
package tree
