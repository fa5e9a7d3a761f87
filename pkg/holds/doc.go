// Package holds is the form in which a driver asks, at a socket beside it and beside CSI, whether a volume may be
// detached from a node.
//
// Kubernetes detaches a volume that a node's kubelet still reports in use when the node is not Ready for six minutes,
// or has the taint out-of-service, also if its machine runs and writes. The driver is told to detach, and has no client
// of Kubernetes to see that; the controllers have one. Package failover answers and package driver asks; both messages
// are maps (a protobuf Struct), so that neither side needs generated code and each ignores what it does not know.
package holds
