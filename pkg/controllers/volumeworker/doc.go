// Package volumeworker makes the LocalVolumes of a node (docs/design/019-local-volumes.md).
//
// It asks the node's own driver through its CSI socket, as sidecars do, and reports what it was told in the status of
// the LocalVolumes. It writes nothing else in Kubernetes. What it does twice comes out once, because a CSI call does;
// and before each call it reads the object past its cache, since what an old one wants may have been undone.
package volumeworker
