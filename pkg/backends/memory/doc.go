// Package memory is the reference backend. It has all optional interfaces of the contract but MachineReporter and
// PoolReporter, on minimal storage, so that the layers above can be tested for real and a new backend has a template.
//
// Its state is in tables in memory, under one mutex, and is lost with the process. The data of a volume is files below
// Options.DataDir, so that a node can mount them: a directory for use as a filesystem and a sparse image for use as a
// block device. Every volume has both.
//
// To write a backend, copy this folder and replace the parts that are specific to memory:
//
//   - definition.go and params.go declare the configuration and the parameters;
//   - volume.go and node.go have the required methods; attach.go, expand.go, snapshot.go, group.go, list.go,
//     capacity.go and health.go have most of the optional interfaces;
//   - table.go stands for the records of real storage. Those must outlive the process. This is the only promise of the
//     contract that memory cannot keep;
//   - files.go and copier.go are the storage.
//
// Three habits are worth keeping. First, a name is reserved before anything is created for it, so that only one of many
// concurrent calls proceeds. Second, slow work is done outside the lock and is then either recorded or undone, never
// left unfinished. Third, handles are random and never reused, so that a late call for a deleted volume cannot affect a
// newer volume of the same name.
package memory
