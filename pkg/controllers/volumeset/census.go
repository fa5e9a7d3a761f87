package volumeset

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storage "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// census counts the volumes and slots of a set.
type census struct {
	total    int // all PersistentVolumes, and the slots without one
	bound    int // bound to a claim, or being bound
	ready    int // claims of the template can bind to them now
	fresh    int // not processed by Kubernetes yet
	deleting int
	// undeleted is the driver's error for one of these, if it did not delete the volume.
	undeleted string
	leaving   int // deleting ones without a claim
	slots     int // slots without a PersistentVolume
	stuck     int // slots whose volume may exist and is not expected soon

	// current counts unbound volumes that claims of the template can bind to, except the set's own of an earlier template.
	current int
	unfit   int // unbound, with a class, size or mode that claims of the template cannot use
	// short counts the volumes that the set created from this template and that are smaller than it says.
	short  int
	unseen int // unbound ones that the set may delete once Kubernetes has processed them
	// unclaimed are all unbound volumes.
	unclaimed []*corev1.PersistentVolume
	// removable are the unbound volumes that the set may delete.
	removable []*corev1.PersistentVolume
	// outdated counts the removable volumes of an earlier template; obsolete counts the unfit ones among them.
	outdated, obsolete int
	// retained counts unbound volumes of an earlier template that the set may not delete; lingering counts those among
	// them that claims of the template can bind to.
	retained, lingering int
	// ended is a volume in phase Released or Failed, which fills the set. A failed one is preferred, then the first by
	// name, so that the choice is stable.
	ended *corev1.PersistentVolume
	// listed holds the names of slots whose PersistentVolume is among the volumes.
	listed map[string]bool
	// expected holds the places of the other slots, by name.
	expected map[string]place
}

// count returns the census of a set. Volumes are those that its selector matches.
func count(set *v1alpha1.PersistentVolumeSet, volumes []*corev1.PersistentVolume) census {
	c := census{listed: map[string]bool{}, expected: map[string]place{}}
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
		c.expected[slot.Name] = slot.Segments
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
		c.addEnded(v) // They fill the set, and no claim uses them.
		return
	case v.Spec.ClaimRef != nil:
		c.bound++
		return
	}
	c.addUnbound(set, v, digest)
}

func (c *census) addEnded(v *corev1.PersistentVolume) {
	rank := func(v *corev1.PersistentVolume) int {
		if v.Status.Phase == corev1.VolumeFailed {
			return 0
		}
		return 1
	}
	if c.ended == nil || cmp.Or(cmp.Compare(rank(v), rank(c.ended)), cmp.Compare(v.Name, c.ended.Name)) < 0 {
		c.ended = v
	}
}

func (c *census) addUnbound(set *v1alpha1.PersistentVolumeSet, v *corev1.PersistentVolume, digest string) {
	c.unclaimed = append(c.unclaimed, v)
	isSeen, isFit, isOld := v.Status.Phase == corev1.VolumeAvailable, fits(set.Spec.Template.Spec, v),
		isOutdated(set, v, digest)
	switch {
	case !isFit:
		c.addUnfit(set, v, isOld)
	case isSeen:
		c.ready++
	default:
		c.fresh++
	}
	if isFit && !isOld {
		c.current++
	}
	isOurs := removable(set, v)
	if isOld && !isOurs {
		c.retained++
		if isFit {
			c.lingering++
		}
	}
	switch {
	case !isOurs:
		return
	case !isSeen: // Until Kubernetes has processed it, a claim that names it may be about to bind.
		c.unseen++
		return
	}
	c.removable = append(c.removable, v)
	if isOld {
		c.outdated++
	}
	if isOld && !isFit {
		c.obsolete++
	}
}

func (c *census) addUnfit(set *v1alpha1.PersistentVolumeSet, v *corev1.PersistentVolume, isOld bool) {
	c.unfit++
	isSmall := v.Spec.Capacity.Storage().Cmp(set.Spec.Template.Spec.Capacity) < 0 // Others may have been edited.
	if isSmall && !isOld && v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID) {
		c.short++
	}
}

// isOutdated reports whether the set created a volume from an earlier template.
func isOutdated(set *v1alpha1.PersistentVolumeSet, v *corev1.PersistentVolume, digest string) bool {
	return v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID) &&
		v.Annotations[v1alpha1.TemplateAnnotation] != digest
}

// fits reports whether a claim with the template's classes, size and modes can bind to a volume.
func fits(wanted v1alpha1.PersistentVolumeTemplateSpec, v *corev1.PersistentVolume) bool {
	for _, mode := range wanted.AccessModes {
		if !slices.Contains(v.Spec.AccessModes, mode) {
			return false
		}
	}
	return storage.GetPersistentVolumeClass(v) == wanted.StorageClassName &&
		v.Spec.Capacity.Storage().Cmp(wanted.Capacity) >= 0 &&
		modeOf(v.Spec.VolumeMode) == modeOf(&wanted.VolumeMode) &&
		ptr.Deref(v.Spec.VolumeAttributesClassName, "") == wanted.VolumeAttributesClassName
}

// modeOf returns a volume's mode, by default Filesystem.
func modeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil || *mode == "" {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

// coming returns the number of slots whose volumes are expected soon.
func (c *census) coming() int { return c.slots - c.stuck }

// unbound returns the number of volumes that claims can bind to now or soon.
func (c *census) unbound() int { return c.ready + c.fresh }

// removable reports whether the set may delete an unbound volume: the set created it, it has the set's finalizer, and
// its policy is Delete.
func removable(set *v1alpha1.PersistentVolumeSet, v *corev1.PersistentVolume) bool {
	return v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID) &&
		controllerutil.ContainsFinalizer(v, v1alpha1.VolumeSetFinalizer) &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}
