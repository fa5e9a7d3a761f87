// Package recycler scrubs Released PersistentVolumes that have an annotation, using a pod, and makes them Available
// again.
//
// kube-controller-manager marks volumes of the policy Recycle as Failed unless they are in-tree. Recycling is therefore
// the policy Retain plus an annotation that the volume has had since its creation: no class is read at release. A pod
// cannot mount a Released volume. Its claimRef is set, by UID, to a scrub claim in the recycler's own namespace, and
// cleared at the end.
//
// # What makes it safe
//
//   - Every step is one write, with the resource version at which its reasons were seen. The record on the volume names
//     the next step before it is taken. A crash repeats a step, and of two leaders one wins.
//   - The record also names the claim whose release began the scrub. After the release of another claim it is dropped:
//     its delay and its reports say nothing of the later users.
//   - Names of scrub claims and pods are random and never reused. A leader that resumes late creates at most a claim
//     and a pod that no record names: the claim binds to no tenant's volume, and both are swept.
//   - A scrub pod has a finalizer: even a force-deleted pod exists until its kubelet has reported that its containers
//     ended. A pod that still runs could scrub the data of the next tenant.
//   - A volume that may be mounted is never scrubbed: VolumeAttachments, the kubelets' volumes in use, and pods are
//     read past any cache. Without an attach step, all nodes that could mount the volume must be Ready.
//   - A volume is never scrubbed while another PersistentVolume may show its storage. Before the scrub pod is created,
//     and before the volume is given back, these are read past the cache: one may have been created meanwhile.
//   - A local volume is also taken, and given back, only once its node has reported that it does not use it. A pod that
//     was deleted by force may write on without its object. The report must answer the present record.
//   - A volume is given back only after its own scrub pod succeeded and nobody deleted the pod, and only while the
//     claimRef still names that pod's claim.
//   - Its class is noted before: with that list an admission policy keeps clones and restores from empty volumes.
//   - Waiting is measured by the process's own monotonic clock.
//
// # Files
//
// record.go has the record on a volume. plan.go decides on the next step, and users.go on who may use the volume; both
// are pure. reports.go has the reports of nodes on local volumes. reconcile.go and reads.go read, and step.go writes.
// pod.go has the scrub claim and pod, and classes.go the list for the admission policy. sweep.go removes claims and
// pods that no record names.
package recycler
