// Package tree copies and removes directory trees whose contents belong to somebody else.
//
// A pod may change its volume while the driver walks it: it may swap a directory for a symbolic link to
// /etc, a file for a device, or mount something inside. So nothing here ever walks a path of more than one
// name. Every entry is opened relative to its open parent by openat2(2), following no link and crossing no
// mount, and everything else is done to what was opened: what was looked at is what is copied. Nothing
// outside the tree is read or removed.
//
// A copy keeps hard links, owners, modes, access control lists (POSIX and NFS 4) and other extended attributes, times,
// symbolic links, fifos, device nodes and holes, and shares blocks where the filesystem can. A file whose owner or list
// cannot be kept is an error: its copy would open it to others. Sockets are
// left out: they mean nothing without the process that listens. A tree that is written meanwhile is not
// copied as of one instant.
//
// It needs Linux 5.8 and /proc.
package tree
