// Package startup takes the taint of new nodes away once their driver serves.
//
// A node joins before its driver has started. Pods with claims that are scheduled there meanwhile wait, and where the
// number of volumes of a node is bounded, too many of them may come: nobody knows the bound before the driver says it.
// So an operator has nodes join with the taint DRIVER/agent-not-ready, by the kubelet's --register-with-taints,
// Karpenter's startupTaints or a node group's, and this package removes it.
//
// It is removed when the CSINode that belongs to this very Node lists the driver, which the kubelet writes in one with
// the bound. A CSINode of an earlier Node of the same name says nothing. The taint is never added: when a driver stops
// later, the pods that use its volumes go on.
//
// Both objects are read past the cache before the write, and the API server refuses a write over a Node that has
// changed, so that two managers which both believe to lead remove no taint that a person has just put there anew.
package startup
