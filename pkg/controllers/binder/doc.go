// Package binder binds claims to PersistentVolumes that are ready for them, beside Kubernetes' own
// PersistentVolume controller.
//
// That controller shares 20 requests a second with all others of kube-controller-manager, and spends
// four or five on each claim. The binder has a client of its own. It writes what the controller would
// have written, in the same order, so that the controller finds nothing left to write: the
// PersistentVolume's claimRef, its phase, the claim's volumeName and annotations, the claim's status.
//
// # Files
//
// plan.go decides what to do about one claim, and match.go which volume fits; both are pure.
// reconcile.go reads the world and carries the plan out by write.go. manager.go says which events lead
// to which claim.
//
// # What makes it safe
//
//   - Every write is made under the resource version that was read, so that it fails if anybody
//     wrote since.
//   - The PersistentVolume is written first. A volume that names a claim is the claim's, whoever
//     wrote it: the binder, the controller and the scheduler all go on with it from there.
//   - A claim's volumeName never changes once it is set. A volume that names a claim which is bound
//     elsewhere was therefore never used by it, and the binder frees it, before Kubernetes deletes
//     it.
//   - Kubernetes calls a claim lost that is bound to a volume which its controller has not seen. A
//     binding is begun with an Available volume only. The controller writes that phase, so it has
//     seen the volume, without a claim. A volume that is freed gets the phase Pending first, and
//     waits for the controller to write Available again.
//   - Under WaitForFirstConsumer the scheduler chooses volumes. The binder begins no such binding,
//     and finishes those that it finds.
package binder
