// Package doctor explains why a claim, a pod or a node is stuck. It reports where a volume is, which objects use it,
// which step waits for which component, and what an operator can do.
//
// Read takes one look at the API, and ReadOwn adds Stowage's own kinds for package bundle. All other code is pure: it
// examines the Cluster that Read returned, and each Finding names its evidence. The rules follow a volume's lifecycle:
// claim.go until the claim is bound, volume.go for the PersistentVolume, attach.go and mount.go for a pod's node,
// pod.go and node.go for the objects that an operator asks about. driver.go examines the pods of a Stowage driver.
//
// The package reads only from Kubernetes. The state of the storage reaches it through the events of the orphan sweep
// (pkg/controllers/orphan).
package doctor
