// Package metadata finds out which machine of a cloud the process runs on.
//
// Several can tell: the cloud's own metadata service, which pods may not be able to reach; the orchestrator's object
// for the node, which a driver may not be allowed to read; and whoever starts the driver. They are asked one after the
// other, each for a bounded time, since a metadata service that is out of reach drops requests instead of refusing
// them. When nobody knows, the error has the reasons of all, because any one of them may be what is wrong.
//
// What is asked for stays as it is for as long as the machine runs, so that one answer is enough. What changes, such as
// disks and network interfaces, is none of this package's; limits deals with it.
package metadata
