// Package volume is the controller's side of every backend: it turns a backend's plain answers into the guarantees of a
// container orchestrator.
//
// A backend only says Exists, NotFound or InUse. This package knows that creating an existing volume of the same form
// is success, that deleting a missing one is success, and that the same name for something else is a conflict. It is
// written once, so no backend can get it wrong.
//
// The package does not know CSI or gRPC; package driver translates. Callers hold the lock of the volume or of the name
// that they pass.
package volume
