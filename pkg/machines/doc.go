// Package machines defines the messages with which a driver reports, at its socket and in addition to CSI, the state of
// a node's machine.
//
// CSI has no such call. Controllers have no cloud credentials, and the driver has no Kubernetes client. The controllers
// therefore ask the driver, and the driver asks the cloud. Package driver answers, and csiclient asks. Both messages
// are maps (a protobuf Struct), so neither side needs generated code, and each ignores unknown fields.
package machines
