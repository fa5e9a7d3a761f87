package doctor

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Cluster has the objects of one look at the API.
type Cluster struct {
	Claims      []corev1.PersistentVolumeClaim
	Volumes     []corev1.PersistentVolume
	Pods        []corev1.Pod
	Nodes       []corev1.Node
	Events      []corev1.Event
	Classes     []storagev1.StorageClass
	Drivers     []storagev1.CSIDriver
	CSINodes    []storagev1.CSINode
	Attachments []storagev1.VolumeAttachment

	Own Own // read only for a bundle
}

// find returns the first wanted item, or nil.
func find[T any](items []T, wanted func(*T) bool) *T {
	for i := range items {
		if wanted(&items[i]) {
			return &items[i]
		}
	}
	return nil
}

func (c *Cluster) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return find(c.Claims, func(p *corev1.PersistentVolumeClaim) bool { return p.Namespace == namespace && p.Name == name })
}

func (c *Cluster) volume(name string) *corev1.PersistentVolume {
	return find(c.Volumes, func(v *corev1.PersistentVolume) bool { return v.Name == name })
}

func (c *Cluster) node(name string) *corev1.Node {
	return find(c.Nodes, func(n *corev1.Node) bool { return n.Name == name })
}

func (c *Cluster) class(name string) *storagev1.StorageClass {
	return find(c.Classes, func(s *storagev1.StorageClass) bool { return s.Name == name })
}

func (c *Cluster) driver(name string) *storagev1.CSIDriver {
	return find(c.Drivers, func(d *storagev1.CSIDriver) bool { return d.Name == name })
}

func (c *Cluster) csiNode(name string) *storagev1.CSINode {
	return find(c.CSINodes, func(n *storagev1.CSINode) bool { return n.Name == name })
}

// registration returns a node's registration of a driver, or nil.
func (c *Cluster) registration(node, driver string) *storagev1.CSINodeDriver {
	n := c.csiNode(node)
	if n == nil {
		return nil
	}
	return find(n.Spec.Drivers, func(d *storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// attachments returns the VolumeAttachments of a PersistentVolume.
func (c *Cluster) attachments(volume string) (found []*storagev1.VolumeAttachment) {
	for i := range c.Attachments {
		if name := c.Attachments[i].Spec.Source.PersistentVolumeName; name != nil && *name == volume {
			found = append(found, &c.Attachments[i])
		}
	}
	return found
}

// users returns the pods that name a claim and have not ended.
func (c *Cluster) users(claim *corev1.PersistentVolumeClaim) (pods []*corev1.Pod) {
	for i := range c.Pods {
		p := &c.Pods[i]
		if p.Namespace == claim.Namespace && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed &&
			slices.Contains(claimsOf(p), claim.Name) {
			pods = append(pods, p)
		}
	}
	return pods
}

// claimsOf returns the names of the claims that a pod uses, including those of generic ephemeral volumes.
func claimsOf(p *corev1.Pod) (names []string) {
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, p.Name+"-"+v.Name)
		}
	}
	return names
}

// event returns the newest event of an object with one of the reasons, or nil. An event outlives its cause by up to an
// hour, so rules check the object's state before they use one.
func (c *Cluster) event(kind, namespace, name string, reasons ...string) (newest *corev1.Event) {
	for i := range c.Events {
		e := &c.Events[i]
		o := e.InvolvedObject
		if o.Kind == kind && o.Namespace == namespace && o.Name == name && slices.Contains(reasons, e.Reason) &&
			(newest == nil || instant(e).After(instant(newest))) {
			newest = e
		}
	}
	return newest
}

// instant returns when an event was last seen.
func instant(e *corev1.Event) time.Time {
	at := e.CreationTimestamp.Time
	for _, other := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if other.After(at) {
			at = other
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}

// proof renders an event as a line of evidence.
func proof(e *corev1.Event) string { return "event " + e.Reason + ": " + e.Message }
