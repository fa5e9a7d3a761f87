// Package driver is the gRPC edge: it serves the CSI Identity, Controller, GroupController and Node
// services, and does nothing else. It is the only package that knows CSI's messages and gRPC's codes.
//
// # A request's journey
//
//  1. server.go: the listener hands the call to a chain of interceptors, which give it an ID and a
//     logger (log.go, without secrets: redact.go), measure it (metrics.go), turn a panic or an error
//     into a gRPC status (recovery in interceptors.go, the one table in answers.go), and take the locks
//     that its message asks for (the one table in locks.go). A lock that is taken is ABORTED.
//  2. controller.go, snapshot.go, group.go, node.go, health.go: one short method for each RPC, which
//     decodes the message, calls one method of volume.Service or node.Service, and encodes the answer.
//  3. decode_*.go: from a message to a typed value, pure and strict. What is wrong with a request is said
//     here, with INVALID_ARGUMENT and a sentence, before anything is touched.
//  4. capabilities.go: what is advertised, derived from backends.Features alone.
//
// machines.go serves the one service that is not of CSI, for backends that know the machines of nodes: package
// machines.
//
// Idempotency is in package volume for the controller and in package node for the node.
package driver
