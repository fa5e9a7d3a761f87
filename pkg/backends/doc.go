// Package backends is the contract between Stowage and a kind of storage.
//
// All parts of a CSI driver that do not depend on the storage are written once, above this package: idempotency,
// locking, error codes, logging, metrics, formatting and mounting. A backend reports the state of volumes as it is,
// with the Kinds of Error. It knows nothing of CSI, gRPC or Kubernetes.
//
// # Writing a new backend
//
//  1. Copy pkg/backends/sample, the smallest backend that keeps its volumes, to pkg/backends/<name>. Package memory is
//     the reference for all other interfaces.
//  2. Declare the StorageClass parameters as a struct with `param` tags (package params explains them)
//     and return it from Definition.NewParameters. Parameters arrive decoded and validated.
//  3. Implement Backend (four methods) and NodeBackend (one method). Source describes what to mount and
//     never mounts it: the node pipeline proves, formats and mounts it for every backend alike.
//  4. Implement the optional interfaces that the storage supports: Attacher, Expander, Snapshotter,
//     SnapshotLister, GroupSnapshotter, Cloner, Lister, CapacityReporter, Modifier, Prover, HealthReporter,
//     MachineReporter, PoolReporter and Topologist for the controller; Releaser, Limiter, Inspector,
//     Locator and Meter for the node. Each implemented interface is advertised as a capability; there is no flag. Only
//     an Export can do without both Attacher and Releaser: see Backend.Delete. A side that is a
//     prometheus.Collector has metrics of its own storage, which the driver exports with its others.
//  5. Add one line to pkg/backends/all.
//  6. Call backendtest.Run from a test of about thirty lines. It checks every promise that this package
//     makes in the comments of its interfaces. A backend that passes is complete.
//
// Storage that is files on this machine uses package durable to survive a loss of power, package safepath to turn text
// of others into paths, package tree to copy and remove what pods have written, package dirlock to keep a second
// process out, and package background for work that is longer than a call. Storage behind a cloud's API uses the
// packages below pkg/cloud. A list of pages has the tokens of package pagetoken.
//
// # What a backend promises
//
//   - Every method may be called at any time from many goroutines, even for the same volume.
//   - Every method honours its context: it returns soon after the context ends, with Busy or Unavailable.
//   - A failure is an *Error with the most specific Kind that is true. A failure after which the volume may or may not
//     exist is Busy or Unavailable, never another Kind. Any other Kind implies to the orchestrator that nothing was
//     created, and the volume would leak. An error of the operating system without an Error around it has the Kind that
//     KindOf returns, but a full disk is Unavailable in a call that creates something: only the backend knows whether
//     it has created anything.
//   - An item that exists but cannot be used now is Unusable, in every method that takes its name or its handle. In
//     Create this comes before Exists and all other failures. The Kind is never NotFound, because a deletion would then
//     have succeeded. Neither the name nor the handle is given to another item. Lists include the item with all that is
//     known, or omit it; they do not fail. Release succeeds, because a volume that is no longer mounted must not block
//     a node. The backend retries by itself.
//   - A failing disk, pool, share or record makes only its own contents Unusable, even when the backend is opened. All
//     others are served.
//   - State survives the process. After a crash at any instant, everything that was acknowledged still exists, and
//     everything else is either complete or gone.
//   - No secret is kept in a handle, an attribute or the text of an error.
package backends
