package volumeset

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// census is what there is of a set.
type census struct {
	total    int // all PersistentVolumes, and the slots that have none yet
	bound    int // bound to a claim, or being bound
	ready    int // a claim can bind to them now
	fresh    int // Kubernetes has not looked at them yet
	deleting int
	leaving  int // of those that are being deleted, the ones that no claim keeps
	slots    int // slots without a PersistentVolume
	stuck    int // of the slots, those whose volume may exist, and will not come soon

	// current are unbound volumes that are as the template says, or not ours to replace; outdated are ours, of an earlier template.
	current int
	// removable are the unbound volumes that the set may delete.
	removable []*corev1.PersistentVolume
	outdated  int
	// listed are the names of slots whose PersistentVolume is among the volumes.
	listed map[string]bool
}

// count takes the census of a set. Volumes are those that its selector matches.
func count(set *v1alpha1.PersistentVolumeSet, volumes []*corev1.PersistentVolume) census {
	c := census{listed: map[string]bool{}}
	digest := templateDigest(set.Spec.Template)
	there := make(map[string]bool, len(volumes))
	for _, v := range volumes {
		there[v.Name] = true
		c.add(set, v, digest)
	}
	for _, slot := range set.Status.Slots {
		if there[slot.Name] {
			c.listed[slot.Name] = true
			continue
		}
		c.slots++
	}
	c.total = len(volumes) + c.slots
	return c
}

func (c *census) add(set *v1alpha1.PersistentVolumeSet, v *corev1.PersistentVolume, digest string) {
	switch {
	case v.DeletionTimestamp != nil:
		c.deleting++
		if v.Spec.ClaimRef == nil {
			c.leaving++
		}
		return
	case v.Status.Phase == corev1.VolumeReleased, v.Status.Phase == corev1.VolumeFailed:
		return // They fill the set, and are nobody's.
	case v.Spec.ClaimRef != nil:
		c.bound++
		return
	case v.Status.Phase == corev1.VolumeAvailable:
		c.ready++
	default:
		c.fresh++
	}
	if !removable(set, v) {
		c.current++
		return
	}
	if v.Status.Phase == corev1.VolumeAvailable { // Until Kubernetes has looked at it, a claim that names it may be on its way.
		c.removable = append(c.removable, v)
	}
	if v.Annotations[v1alpha1.TemplateAnnotation] == digest {
		c.current++
	} else {
		c.outdated++
	}
}

// coming is the number of slots whose volumes are to be expected.
func (c *census) coming() int { return c.slots - c.stuck }

// unbound is the number of volumes that claims can bind to, soon at the latest.
func (c *census) unbound() int { return c.ready + c.fresh }

// removable reports whether the set may delete an unbound volume: the set has made it, and its policy is Delete.
func removable(set *v1alpha1.PersistentVolumeSet, v *corev1.PersistentVolume) bool {
	return v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID) &&
		controllerutil.ContainsFinalizer(v, v1alpha1.VolumeSetFinalizer) &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}
