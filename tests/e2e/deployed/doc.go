// Package deployed brings up a cluster with Stowage in it, as a user does: the manifests of deploy/kubernetes are
// applied with kubectl, and nothing else but pools for this machine: one of directories where a test wants it, and none
// with a reserve, since the disk here may be fuller than a node's. The end-to-end tests and the demonstration begin
// here.
package deployed
