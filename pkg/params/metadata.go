package params

// Metadata has the parameters that the Kubernetes sidecars add for a volume, and the keys of a class that they use
// themselves. As a target of Decode it makes all of them known.
//
// csi-provisioner sets the names with --extra-create-metadata, and csi-resizer with --extra-modify-metadata; otherwise
// they are empty.
//
// Current sidecars strip the secret references before they call the driver, which gets the secrets themselves in
// another field. The references are accepted and ignored, so that a class has the same meaning if its parameters come
// from elsewhere, such as a test or an older sidecar. Those without a prefix are deprecated and were never stripped.
//
// Sources: "StorageClass Secrets" and "VolumeSnapshotClass Secrets" in the kubernetes-csi documentation;
// external-provisioner pkg/controller/controller.go; external-resizer pkg/modifycontroller.
type Metadata struct {
	PVCNamespace string `param:"csi.storage.k8s.io/pvc/namespace" doc:"Namespace of the PersistentVolumeClaim; set by the sidecar."`
	PVCName      string `param:"csi.storage.k8s.io/pvc/name" doc:"Name of the PersistentVolumeClaim; set by the sidecar."`
	PVName       string `param:"csi.storage.k8s.io/pv/name" doc:"Name of the PersistentVolume; set by the sidecar."`

	_ string `param:"csi.storage.k8s.io/secret-name"`
	_ string `param:"csi.storage.k8s.io/secret-namespace"`
	_ string `param:"csi.storage.k8s.io/provisioner-secret-name" alias:"csiProvisionerSecretName"`
	_ string `param:"csi.storage.k8s.io/provisioner-secret-namespace" alias:"csiProvisionerSecretNamespace"`
	_ string `param:"csi.storage.k8s.io/controller-publish-secret-name" alias:"csiControllerPublishSecretName"`
	_ string `param:"csi.storage.k8s.io/controller-publish-secret-namespace" alias:"csiControllerPublishSecretNamespace"`
	_ string `param:"csi.storage.k8s.io/controller-expand-secret-name"`
	_ string `param:"csi.storage.k8s.io/controller-expand-secret-namespace"`
	_ string `param:"csi.storage.k8s.io/controller-modify-secret-name"`
	_ string `param:"csi.storage.k8s.io/controller-modify-secret-namespace"`
	_ string `param:"csi.storage.k8s.io/node-stage-secret-name" alias:"csiNodeStageSecretName"`
	_ string `param:"csi.storage.k8s.io/node-stage-secret-namespace" alias:"csiNodeStageSecretNamespace"`
	_ string `param:"csi.storage.k8s.io/node-publish-secret-name" alias:"csiNodePublishSecretName"`
	_ string `param:"csi.storage.k8s.io/node-publish-secret-namespace" alias:"csiNodePublishSecretNamespace"`
	_ string `param:"csi.storage.k8s.io/node-expand-secret-name"`
	_ string `param:"csi.storage.k8s.io/node-expand-secret-namespace"`
}

// SnapshotMetadata is Metadata for snapshots. csi-snapshotter sets the names with --extra-create-metadata: the first
// three for a snapshot, the others for a group of snapshots.
//
// Source: external-snapshotter pkg/utils/util.go.
type SnapshotMetadata struct {
	SnapshotNamespace string `param:"csi.storage.k8s.io/volumesnapshot/namespace" doc:"Namespace of the VolumeSnapshot; set by the sidecar."`
	SnapshotName      string `param:"csi.storage.k8s.io/volumesnapshot/name" doc:"Name of the VolumeSnapshot; set by the sidecar."`
	ContentName       string `param:"csi.storage.k8s.io/volumesnapshotcontent/name" doc:"Name of the VolumeSnapshotContent; set by the sidecar."`
	GroupNamespace    string `param:"csi.storage.k8s.io/volumegroupsnapshot/namespace" doc:"Namespace of the VolumeGroupSnapshot; set by the sidecar."`
	GroupName         string `param:"csi.storage.k8s.io/volumegroupsnapshot/name" doc:"Name of the VolumeGroupSnapshot; set by the sidecar."`
	GroupContentName  string `param:"csi.storage.k8s.io/volumegroupsnapshotcontent/name" doc:"Name of the VolumeGroupSnapshotContent; set by the sidecar."`

	_ string `param:"csi.storage.k8s.io/snapshotter-secret-name"`
	_ string `param:"csi.storage.k8s.io/snapshotter-secret-namespace"`
	_ string `param:"csi.storage.k8s.io/snapshotter-list-secret-name"`
	_ string `param:"csi.storage.k8s.io/snapshotter-list-secret-namespace"`
	_ string `param:"csi.storage.k8s.io/group-snapshotter-secret-name"`
	_ string `param:"csi.storage.k8s.io/group-snapshotter-secret-namespace"`
	_ string `param:"csi.storage.k8s.io/group-snapshotter-get-secret-name"`
	_ string `param:"csi.storage.k8s.io/group-snapshotter-get-secret-namespace"`
}
