// Package orphan compares the volumes and attachments in a driver's storage with those in Kubernetes, and reports each
// difference.
//
// csi-attacher verifies the VolumeAttachments that exist. No component of Kubernetes detects an attachment without one,
// a volume without a PersistentVolume, or a PersistentVolume whose volume is gone. Each sweep reads the attachments
// from the storage and from VolumeAttachments. Between sweeps only the time since which a difference has been seen is
// remembered.
//
// # Differences
//
//   - leaked: the storage has a volume of this driver that no PersistentVolume names. It may be kept on purpose, for
//     example after a PersistentVolume of policy Retain was deleted.
//   - missing: a PersistentVolume names a volume that the storage does not have.
//   - dangling: a volume is attached to a node of the cluster without a VolumeAttachment. No pod can use it on another
//     node.
//   - foreign: a volume is attached to a machine that is not a node of the cluster, or to a node that has lost its
//     registration with the driver.
//   - unattached: a VolumeAttachment says that a volume is attached and the storage does not.
//   - stranded: a volume is attached by a VolumeAttachment whose PersistentVolume was removed by force, so
//     that csi-attacher cannot detach it.
//
// # What is repaired
//
// A dangling attachment is detached if the operator enables this and the node's kubelet does not report the volume in
// use. The repair writes the VolumeAttachment that Kubernetes would write, under the same name, with csi-attacher's
// finalizer, and deletes it. csi-attacher then detaches. Kubernetes and this package use the same name, so the second
// to create the object fails. A pod that starts meanwhile waits.
//
// A leaked volume is deleted if the operator sets a time, once the process has seen it leaked for that long and it is
// not attached. The PersistentVolumes are read past the cache just before each deletion. A volume that may belong to an
// open slot of a PersistentVolumeSet stays. The driver must only list volumes of its own cluster, and the volumes
// without a PersistentVolume must be few: if they are many, PersistentVolumes were lost.
//
// # What makes it safe
//
//   - A difference counts when two consecutive sweeps have seen it, so that lagging reads of the storage and work in
//     progress do not count. Volumes without a PersistentVolume have more time: csi-provisioner may still be working.
//   - PersistentVolumes are read before and after the storage's list. A PersistentVolume in both lists existed all the
//     time.
//   - An incomplete list proves nothing, and neither does a list that is empty or lacks most of the PersistentVolumes:
//     the credentials or the configuration may be wrong.
//   - Time is measured by the process's own monotonic clock.
//
// # Files
//
// plan.go compares, and is pure. sweep.go has the loop, and look.go reads the storage and Kubernetes. repair.go
// detaches, and discard.go deletes volumes. slots.go reads the slots of PersistentVolumeSets. report.go has metrics and
// events.
package orphan
