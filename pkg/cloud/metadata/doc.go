// Package metadata finds out which machine of a cloud the process runs on.
//
// Several sources may know: the cloud's metadata service, which pods may not be able to reach; the orchestrator's
// object for the node, which a driver may not be allowed to read; and the operator who starts the driver. First asks
// them one after another, each for a bounded time, since an unreachable metadata service drops requests instead of
// refusing them. If no source knows, the error has the reasons of all, because any of them may be the cause.
//
// The requested facts stay the same while the machine runs, so one answer is enough. Facts that change, such as disks
// and network interfaces, belong to package limits.
package metadata
