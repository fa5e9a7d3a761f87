// Package recycler has Released PersistentVolumes that bear an annotation scrubbed by a pod, and makes them Available
// again.
//
// kube-controller-manager marks volumes of the policy Recycle Failed unless they are in-tree. So recycling is the
// policy Retain plus an annotation that the volume has borne since it was made: nothing at release reads a class. A pod
// cannot mount a Released volume: its claimRef is pointed, by UID, at a scrub claim in a namespace of the recycler's
// own, and cleared at the end.
//
// # What makes it safe
//
//   - Every step is one write, made under the resource version at which its reasons were seen. The record on the volume
//     says which step comes next before it is taken. A crash repeats a step, and of two leaders one wins.
//   - Names of scrub claims and pods are random and never used twice. A leader that wakes up late makes at most a claim
//     and a pod that no record names: the claim binds to no tenant's volume, and both are swept.
//   - A scrub pod has a finalizer: one that was deleted by force is there until its kubelet has said that its
//     containers ended. A pod that may still run would scrub the data of the next tenant.
//   - A volume that may be mounted is never scrubbed: VolumeAttachments, what kubelets report in use and pods are read
//     past any cache. Where there is no attach step, no node that could mount the volume may be out of touch.
//   - A volume is given back only after its own scrub pod succeeded, and only while the claimRef still names that pod's
//     claim.
//   - Its class is noted before: an admission policy keeps clones and restores from empty volumes by that list.
//   - Waiting is measured by the process' own monotonic clock.
//
// # Files
//
// record.go is what stands on a volume, plan.go decides the next step and users.go who may use the volume; both are
// pure. reconcile.go and reads.go read and step.go writes; pod.go has what is created, classes.go what a policy reads.
// sweep.go removes what no record names.
package recycler
