// Package uses is the protocol by which a driver says whether its node uses a volume. It uses CSI's socket.
//
// CSI has no such call. A pod's object may be gone while its kubelet has not unmounted its volumes: the pod was deleted
// by force, for example. Without an attach step only the node's driver knows then. Package driver answers, and
// csiclient asks. Both messages are maps (a protobuf Struct), so that neither side needs generated code and each
// ignores fields that it does not know.
package uses
