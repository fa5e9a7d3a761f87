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

// Pods are pods.
func Pods() Kind { return Kind{Name: "Pod", Resource: core("pods")} }

// Claims are PersistentVolumeClaims.
func Claims() Kind {
	return Kind{Name: "PersistentVolumeClaim", Resource: core("persistentvolumeclaims")}
}

// Volumes are PersistentVolumes.
func Volumes() Kind {
	return Kind{Name: "PersistentVolume", Resource: core("persistentvolumes"), Global: true}
}

// Namespaces are namespaces.
func Namespaces() Kind { return Kind{Name: "Namespace", Resource: core("namespaces"), Global: true} }

// Nodes are nodes.
func Nodes() Kind { return Kind{Name: "Node", Resource: core("nodes"), Global: true} }

// Snapshots are VolumeSnapshots.
func Snapshots() Kind {
	return Kind{Name: "VolumeSnapshot", Resource: group("snapshot.storage.k8s.io", "v1", "volumesnapshots")}
}

// Contents are VolumeSnapshotContents.
func Contents() Kind {
	return Kind{Name: "VolumeSnapshotContent", Resource: group("snapshot.storage.k8s.io", "v1", "volumesnapshotcontents"),
		Global: true}
}
