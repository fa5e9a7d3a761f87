// Package startup removes the taint of new nodes once their driver serves.
//
// A node joins before its driver has started. Pods with claims that are scheduled there meanwhile must wait. If a
// node's number of volumes is limited, too many pods may be scheduled: the limit is not known before the driver reports
// it. An operator therefore lets nodes join with the taint DRIVER/agent-not-ready, by the kubelet's
// --register-with-taints, Karpenter's startupTaints or a node group's taints, and this package removes it.
//
// The taint is removed when the CSINode that belongs to this very Node lists the driver. The kubelet writes the limit
// in the same update. A CSINode of an earlier Node of the same name is ignored. The taint is never added: when a driver
// stops later, the pods that use its volumes continue.
//
// Both objects are read past the cache before the write, and the API server refuses to write a Node that has changed.
// Even two managers that both believe they lead never remove a taint that a person has just added again.
package startup
