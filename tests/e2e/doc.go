// Package e2e tests Stowage in a real Kubernetes: pods use what claims get, and after each test nothing is left of it,
// in the API or on the node. The cluster is the one of tests/e2e/cluster, and the driver is deployed from
// deploy/kubernetes as a user does it. `make e2e` runs it, E2EFLAGS=-timings measures too.
package e2e
