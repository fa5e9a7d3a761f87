// Package holders tells who keeps a filesystem or a block device in use.
//
// An unmount that is refused names no culprit: EBUSY is all that the kernel says, and an operator whose pod
// does not end has to search the node. This package does that search: processes that have a file open on
// the mount, work in it or have a file of it in memory, mounts below it, and other mount namespaces that
// have a copy. It reads /proc (proc(5), fdinfo and mountinfo) only, and never the filesystem in question,
// which may not answer. It is asked after a failure, so it may take its time, and what it says is advice:
// nothing is decided by it.
package holders
