// Package orphan compares the volumes and attachments that a driver's storage has with those that Kubernetes knows, and
// tells of each difference.
//
// csi-attacher verifies the VolumeAttachments that exist. Nothing in Kubernetes sees an attachment without one, a
// volume without a PersistentVolume, or a PersistentVolume whose volume is gone. What is attached where is read from
// the storage and from VolumeAttachments in each sweep, and is never remembered: only since when a difference has been
// seen is.
//
// # Differences
//
//   - leaked: the storage has a volume of this driver that no PersistentVolume names. It may also be
//     kept on purpose, as after a PersistentVolume of policy Retain was deleted.
//   - missing: a PersistentVolume names a volume that the storage does not have.
//   - dangling: a volume is attached to a node of the cluster without a VolumeAttachment. No pod starts
//     with it on another node.
//   - foreign: a volume is attached to a machine that is no node of the cluster, or a node that has lost
//     its registration with the driver.
//   - unattached: a VolumeAttachment says that a volume is attached and the storage does not.
//   - stranded: a volume is attached by a VolumeAttachment whose PersistentVolume was removed by force, so
//     that csi-attacher cannot detach it.
//
// # What is repaired
//
// A dangling attachment, if the operator asks for that, and the node's kubelet does not report the volume in use.
// The repair writes the VolumeAttachment that Kubernetes would write, under the same name, with csi-attacher's
// finalizer, and deletes it. csi-attacher then detaches. Kubernetes and this package exclude each other
// by the name: the second of them to create it fails, and a pod that comes meanwhile waits.
//
// A leaked volume is deleted, if the operator asks for that with a time, once the process has seen it leaked for so
// long and it is attached nowhere. The PersistentVolumes are read past the cache just before. The driver must list
// volumes of its own cluster alone, and the volumes without a PersistentVolume must be few: many are
// PersistentVolumes that were lost.
//
// # What makes it safe
//
//   - A difference counts when two sweeps in a row have seen it, so that a storage whose reads lag, or work in
//     progress, is no difference. Volumes without a PersistentVolume have longer: csi-provisioner may still be at work.
//   - PersistentVolumes are read before and after the storage's list. One that is in both was there all the time.
//   - A list that cannot be read to its end proves nothing, and neither does one that is empty, or lacks most
//     of the PersistentVolumes: the credentials or the configuration may be another's.
//   - Time is the process' own monotonic clock.
//
// # Files
//
// plan.go compares, and is pure. sweep.go is the loop, and look.go reads the world for it. repair.go has attachments
// detached, and discard.go deletes volumes. report.go has metrics and events.
package orphan
