// Package deployed brings up a cluster with Stowage, as a user does: it applies the manifests of deploy/kubernetes with
// kubectl. Only the pools differ: a test may add a pool of directories, and no pool has a reserve, because the disk of
// this machine may be fuller than a node's. The end-to-end tests and the demonstration start here.
package deployed
