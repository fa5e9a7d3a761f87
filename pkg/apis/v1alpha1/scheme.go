package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of Stowage's resources.
const Group = "stowage.dev"

// GroupVersion returns the group and version of the types of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: "v1alpha1"}
}

// AddToScheme makes the types of this package known to clients that use the scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &PersistentVolumeSet{}, &PersistentVolumeSetList{}, &NodeStorage{},
		&NodeStorageList{}, &LocalVolume{}, &LocalVolumeList{}, &LocalSnapshot{}, &LocalSnapshotList{},
		&LocalSnapshotGroup{}, &LocalSnapshotGroupList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
