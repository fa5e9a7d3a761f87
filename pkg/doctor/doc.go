// Package doctor explains why a claim, a pod or a node is stuck. It says where a volume is, which objects hold it,
// which step waits on which component, and what an operator can do.
//
// Read takes one look at the API. Everything else is pure: a Cluster is examined as it was seen, and each Finding names
// its evidence. The rules follow a volume's way: claim.go until it is bound, volume.go for the PersistentVolume,
// attach.go and mount.go for a pod's node, pod.go and node.go for the objects that an operator asks about. driver.go
// looks at the pods of a Stowage driver.
//
// The package asks Kubernetes only. What the storage says reaches it through the events of the orphan sweep
// (pkg/controllers/orphan).
package doctor
