// Package holders finds the users of a filesystem or a block device.
//
// A refused unmount does not name its cause: the kernel only says EBUSY, and an operator whose pod does not end has to
// search the node. This package does that search. It finds processes that have a file of the mount open, have their
// working directory in it or have a file of it mapped; mounts below it; and other mount namespaces that have a copy. It
// only reads /proc (proc(5), fdinfo and mountinfo), and never the filesystem in question, which may not answer. It runs
// after a failure, so it may take its time. Its result is advice: no decision depends on it.
package holders
