// Command conformance runs the External.Storage specs of k8s.io/kubernetes/test/e2e, the suite with which Kubernetes
// tests storage drivers, against Stowage's backend "local" in a real cluster: `make e2e-conformance`.
//
//	conformance [-suite quick|full] [-definitions NAME,...] [-runs N] [-procs N] [-focus REGEXP] [-keep] [-data FOLDER]
//
// It brings up its own cluster (tests/e2e/cluster) with the pools on an xfs, deploys Stowage and its classes from the
// manifests that users apply (tests/e2e/deployed), and runs the suite once for each definition of the driver in
// testdata. The definitions cover volumes of an image pool with xfs and with ext4, of a directory pool, and of a class
// with immediate binding. A definition declares the capabilities of its volumes. Specs that need another capability
// skip themselves.
//
// The outcome is counted by test pattern. A run fails if a spec failed, if a spec was skipped for a reason that
// skips.yaml does not allow for that definition, or if no spec passed. Several runs also fail if a spec passed in one
// run and failed in another. All logs and reports are below the data folder.
//
// The suite "quick" contains the specs that upstream does not mark as Slow, Serial or Disruptive. "full" contains all
// specs. In "full", an allowance in skips.yaml that was not used is an error, so that the list contains no stale
// entries.
package main
