// Package driver is the gRPC edge: it serves the CSI Identity, Controller, GroupController and Node services. Below it,
// no package knows CSI's messages or gRPC's codes.
//
// # A request's journey
//
//  1. server.go: the listener passes the call to a chain of interceptors. They give it an ID and a
//     logger (log.go, without secrets: redact.go), measure it (metrics.go), turn a panic or an error
//     into a gRPC status (rescue in interceptors.go, the one table in answers.go), keep refusals from
//     being final for what is mounted (staying.go), and take the locks for its message (the one table
//     in locks.go). If a lock is taken, the call is ABORTED.
//  2. controller.go, snapshot.go, group.go, node.go, health.go: one short method for each RPC, which
//     decodes the message, calls one method of volume.Service or node.Service, and encodes the answer.
//  3. decode_*.go: from a message to a typed value, pure and strict. Errors in a request are reported
//     here, with INVALID_ARGUMENT and a sentence, before anything is changed.
//  4. capabilities.go: the advertised capabilities, derived from backends.Features alone.
//
// machines.go and pools.go serve the services that are not of CSI, for backends with these features: packages machines
// and pools. holds.go calls the service of package holds, and serves it in stowage-manager.
//
// Idempotency is in package volume for the controller and in package node for the node.
package driver
