// Command conformance runs the suite by which Kubernetes itself judges storage drivers, the External.Storage specs of
// k8s.io/kubernetes/test/e2e, against Stowage's backend "local" in a real cluster: `make e2e-conformance`.
//
//	conformance [-suite quick|full] [-definitions NAME,...] [-runs N] [-procs N] [-focus REGEXP] [-keep] [-data FOLDER]
//
// It brings up a cluster of its own (tests/e2e/cluster) with the pools on an xfs, deploys Stowage and its classes from
// the manifests that users apply (tests/e2e/deployed), and runs the suite once for each definition of the driver in
// testdata: volumes of an image pool with xfs and with ext4, of a directory pool, and of a class that binds at once. A
// definition declares what such volumes can do, and its specs skip themselves for what it does not declare.
//
// The outcome is counted by test pattern. A run fails when a spec failed, when a spec was skipped for a reason that
// skips.yaml does not allow for that definition, or when it passed nothing; several runs fail also when a spec passed
// in one of them and failed in another. All logs and reports are below the data folder.
//
// The suite "quick" is the specs that upstream does not mark as Slow, Serial or Disruptive. "full" is all; an allowance
// in skips.yaml that allowed nothing in it is an error, so that the list cannot outlive its reasons.
package main
