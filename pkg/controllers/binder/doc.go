// Package binder binds claims to ready PersistentVolumes, alongside Kubernetes' own PersistentVolume controller.
//
// That controller shares 20 requests a second with all other controllers of kube-controller-manager, and spends four or
// five on each claim. The binder has its own client. It makes the controller's writes in the same order, so that
// nothing is left for the controller: the PersistentVolume's claimRef, its phase, the claim's volumeName and
// annotations, the claim's status.
//
// # Files
//
// plan.go decides what to do about one claim, match.go which volume fits, and reach.go which volumes a node can use;
// all three are pure. reconcile.go reads the objects and carries out the plan with write.go. manager.go maps events to
// claims.
//
// # What makes it safe
//
//   - Every write uses the resource version that was read, so it fails if the object has changed since.
//   - The PersistentVolume is written first. A volume that names a claim belongs to the claim, whoever wrote it: the
//     binder, the controller and the scheduler all continue from there.
//   - A claim's volumeName never changes once it is set. A volume that names a claim which is bound elsewhere was
//     therefore never used by it, and the binder frees it, before Kubernetes deletes it.
//   - Kubernetes marks a claim as lost if it is bound to a volume that the controller has not seen. Therefore a
//     binding begins only with an Available volume. The controller writes that phase, so it has seen the volume without
//     a claim. A freed volume gets the phase Pending first, and waits for the controller to write Available again.
//   - Under WaitForFirstConsumer the scheduler chooses volumes. The binder begins no such binding, but finishes
//     existing ones.
package binder
