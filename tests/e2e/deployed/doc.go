// Package deployed brings up a cluster with Stowage in it, as a user does: the manifests of deploy/kubernetes are
// applied with kubectl, and nothing else but a directory pool, where a test wants one. The end-to-end tests and the
// demonstration begin here.
package deployed
