// Command stowage-manager runs the Kubernetes controllers of a driver beside it: the manager of PersistentVolumeSets,
// the binder of claims to their volumes, the search for volumes and attachments that Kubernetes does not know, and the
// failover of nodes whose machine is off. Its commands run controllers that belong to no driver: recycler scrubs
// released volumes, and master and worker offer the disks of nodes.
//
// It is a separate program so that the driver, which is root on every node, has neither a token nor a client of
// Kubernetes. The two communicate through the CSI socket.
package main
