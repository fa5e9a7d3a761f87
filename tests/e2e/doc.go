// Package e2e tests Stowage in a real Kubernetes: pods use the volumes of their claims, and each test leaves nothing
// behind in the API or on the node. The cluster is that of tests/e2e/cluster, and the driver is deployed from
// deploy/kubernetes as a user does. `make e2e` runs the tests; E2EFLAGS=-timings also measures.
package e2e
