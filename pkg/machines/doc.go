// Package machines is the form in which a driver says, at its socket and beside CSI, what is true of the machine that a
// node runs on.
//
// CSI has no such call. Controllers have no credentials of a cloud, and the driver has no client of Kubernetes: so the
// controllers ask the driver, which asks the cloud. package driver answers and csiclient asks; both messages are maps
// (a protobuf Struct), so that neither side needs generated code and each ignores what it does not know.
package machines
