// Package node stages, publishes, unpublishes, unstages, grows, measures, examines and trims volumes on a node. It does
// so in the same way for every backend.
//
// A backend only says where a volume's data is. This package proves a device, probes it, checks it, formats it if it is
// blank, grows it, mounts it and gives its files to a group; it binds a directory and mounts an export. The order of
// these phases is in stage.go and publish.go, and each phase is a method. The mechanisms are in the packages below:
// device, filesystem, mount, ownership, stats. Package ledger records what is known about a volume between calls. A
// record is never believed before the kernel was asked.
//
// Each call may have been made before, may have been cut short at any point by a kill, and may come in any order. So
// each call first looks at the current state: it keeps what is right, resumes or removes what is unfinished, and leaves
// alone what belongs to something else, naming it in the error.
//
// Callers hold one lock per volume. Calls for different volumes run concurrently and share only the ledger's memory.
package node
