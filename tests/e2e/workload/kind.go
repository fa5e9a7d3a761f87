package workload

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind is a kind of object that tests wait for.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
	Global   bool // in no namespace
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func group(name, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: name, Version: version, Resource: resource}
}

// Pods is the kind Pod.
func Pods() Kind { return Kind{Name: "Pod", Resource: core("pods")} }

// Claims is the kind PersistentVolumeClaim.
func Claims() Kind {
	return Kind{Name: "PersistentVolumeClaim", Resource: core("persistentvolumeclaims")}
}

// Volumes is the kind PersistentVolume.
func Volumes() Kind {
	return Kind{Name: "PersistentVolume", Resource: core("persistentvolumes"), Global: true}
}

// Namespaces is the kind Namespace.
func Namespaces() Kind { return Kind{Name: "Namespace", Resource: core("namespaces"), Global: true} }

// Nodes is the kind Node.
func Nodes() Kind { return Kind{Name: "Node", Resource: core("nodes"), Global: true} }

// Snapshots is the kind VolumeSnapshot.
func Snapshots() Kind {
	return Kind{Name: "VolumeSnapshot", Resource: group("snapshot.storage.k8s.io", "v1", "volumesnapshots")}
}

// Contents is the kind VolumeSnapshotContent.
func Contents() Kind {
	return Kind{Name: "VolumeSnapshotContent", Resource: group("snapshot.storage.k8s.io", "v1", "volumesnapshotcontents"),
		Global: true}
}
