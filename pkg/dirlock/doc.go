// Package dirlock keeps two processes out of one directory.
//
// The lock is flock(2) on the directory itself: it ends with the process, however that ends, and neither a full nor a
// read-only filesystem stops it. A lock file would need a write, and closing one, as each start of a tool does with its
// copy, waits for the server of some filesystems, which may not answer (docs/design/007). Lock takes a file too: for a
// directory that anybody may read, and so lock, and that has a file which root alone may open.
package dirlock
