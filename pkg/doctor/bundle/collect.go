package bundle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/doctor"
)

// list is the content of one file of the archive.
type list struct {
	name  string
	items []any
	clean cleaner
}

// lists returns the objects that are related to volumes.
func lists(c *doctor.Cluster) []list {
	ours, users := c.OwnPods(), pods(c)
	return []list{
		{name: "claims", items: pointers(c.Claims)},
		{name: "volumes", items: pointers(c.Volumes)},
		{name: "attachments", items: pointers(c.Attachments)},
		{name: "classes", items: pointers(c.Classes)},
		{name: "drivers", items: pointers(c.Drivers)},
		{name: "registrations", items: pointers(c.CSINodes)},
		{name: "nodes", items: pointers(c.Nodes)},
		{name: "volume-sets", items: pointers(c.Own.Sets)},
		{name: "node-storages", items: pointers(c.Own.Storages)},
		{name: "local-volumes", items: pointers(c.Own.LocalVolumes)},
		{name: "pods", items: pointers(users)},
		{name: "own-pods", items: pointers(ours), clean: cleaner{arguments: true}},
		{name: "events", items: pointers(events(c, append(users, ours...)))},
	}
}

func pointers[T any](items []T) []any {
	all := make([]any, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// pods returns the pods that use claims, generic ephemeral volumes or inline CSI volumes.
func pods(c *doctor.Cluster) (found []corev1.Pod) {
	for _, p := range c.Pods {
		if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil
		}) {
			found = append(found, p)
		}
	}
	return found
}

// events returns the events of the objects in the archive. Of a pod's events it returns only those about volumes and
// the pod's node: others may quote a program of the pod.
func events(c *doctor.Cluster, pods []corev1.Pod) (found []corev1.Event) {
	present := map[string]bool{}
	for _, p := range pods {
		present[p.Namespace+"/"+p.Name] = true
	}
	for _, e := range c.Events {
		switch o := e.InvolvedObject; o.Kind {
		case "PersistentVolumeClaim", "PersistentVolume", "VolumeAttachment", "CSIDriver", "CSINode", "Node", "StorageClass",
			"VolumeSnapshot", "VolumeSnapshotContent", "PersistentVolumeSet", "NodeStorage", "LocalVolume":
			found = append(found, e)
		case "Pod":
			if present[o.Namespace+"/"+o.Name] && aboutVolumes(e.Reason) {
				found = append(found, e)
			}
		}
	}
	return found
}

func aboutVolumes(reason string) bool {
	return slices.ContainsFunc([]string{"Volume", "Mount", "Attach", "Schedul", "Evict", "Device"},
		func(word string) bool {
			return strings.Contains(reason, word)
		})
}
