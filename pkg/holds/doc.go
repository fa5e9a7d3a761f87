// Package holds is the protocol by which a driver asks whether a volume may be detached from a node. It uses a socket
// of its own beside CSI's.
//
// Kubernetes detaches a volume that a node's kubelet still reports in use if the node is not Ready for six minutes, or
// has the taint out-of-service, even if its machine runs and writes. The driver is told to detach, and has no
// Kubernetes client to see that; the controllers have one. Package failover answers and package driver asks. Both
// messages are maps (a protobuf Struct), so that neither side needs generated code and each ignores fields that it does
// not know.
package holds
