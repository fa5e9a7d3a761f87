// Package backends is the contract between Stowage and a kind of storage.
//
// Everything that a container orchestrator expects of a CSI driver and that does not depend on the
// storage is written once, above this package: idempotency, locking, error codes, logging, metrics,
// formatting and mounting. A backend is asked for the plain truth about volumes and tells it with the
// Kinds of Error. It knows nothing of CSI, gRPC or Kubernetes.
//
// # Writing a new backend
//
//  1. Copy pkg/backends/memory, the reference, to pkg/backends/<name>.
//  2. Declare the StorageClass parameters as a struct with `param` tags (package params explains them)
//     and return it from Definition.NewParameters. Parameters arrive decoded and validated.
//  3. Implement Backend (four methods) and NodeBackend (one method). Source describes what is to be
//     mounted and never mounts it: the node pipeline proves, formats and mounts it for every backend alike.
//  4. Implement whichever optional interfaces the storage can honour: Attacher, Expander, Snapshotter,
//     GroupSnapshotter, Cloner, Lister, CapacityReporter, Modifier, HealthReporter and Topologist for the
//     controller; Releaser, Limiter, Inspector and Locator for the node. An interface that is there is a
//     capability that is advertised; there is no flag. Only an Export can do without both Attacher and
//     Releaser: see Backend.Delete.
//  5. Add one line to pkg/backends/all.
//  6. Call backendtest.Run from a test of about thirty lines. It checks every promise that this package
//     makes in the comments of its interfaces, and it is the definition of done.
//
// # What a backend promises
//
//   - Every method may be called at any time from many goroutines, also for the same volume.
//   - Every method honours its context: it returns soon after the context ends, with Busy or Unavailable.
//   - A failure is an *Error whose Kind is the most specific that is true. A failure after which the
//     volume may or may not exist is Busy or Unavailable, never another Kind: anything else tells the
//     orchestrator that nothing was made, and the volume would leak.
//   - What is there and cannot be used now is Unusable, in every method that is given its name or its handle: Create
//     too, before Exists, whatever else is wrong. It is never NotFound, since a deletion would then have succeeded, and
//     neither its name nor its handle is given to something else. Lists have it with as much as is known, or leave it
//     out; they do not fail. Release succeeds, since what is not mounted any more must not keep a node from going on. A
//     backend tries again by itself.
//   - What works is served: a disk, pool, share or record that fails makes Unusable what is on it, and nothing else,
//     when the backend is opened too.
//   - State survives the process. What was acknowledged is found again after a crash at any instant, and
//     what was not is either whole or gone.
//   - No secret is kept in a handle, an attribute or the text of an error.
package backends
