// Package dirlock keeps two processes out of one directory.
//
// The lock is flock(2) on the directory itself. It ends with the process, however the process ends, and works on a full
// or read-only filesystem. A lock file would need a write. Closing one, as each start of a tool does with its copy,
// waits for the server of some filesystems, which may not answer (docs/design/007). Lock also accepts a file. This is
// for a directory that every user may read, and so lock, if it has a file that only root may open.
package dirlock
