// Package volume is the controller's side of every backend: it turns the plain truth that a backend
// tells into what a container orchestrator may rely on.
//
// A backend says Exists, NotFound or InUse and leaves it at that. This package knows that creating what
// is there already in the same form is success, that deleting what is gone is success, and that the
// same name for something else is a conflict. It is written once, so no backend can get it wrong.
//
// Nothing here knows CSI or gRPC; package driver translates. Callers hold the lock of the volume or of
// the name that they pass.
package volume
