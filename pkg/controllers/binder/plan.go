package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"
)

// preResize is on a PersistentVolume that was expanded without its filesystem: the size in the claim's status is then
// not the volume's.
const preResize = "volume.alpha.kubernetes.io/pre-resize-capacity"

// view holds the data for a decision about one claim.
type view struct {
	driver string
	claim  *corev1.PersistentVolumeClaim
	class  *storagev1.StorageClass // nil if it does not exist
	pooled bool                    // a PersistentVolumeSet fills the class
	named  []*corev1.PersistentVolume
	others []*corev1.PersistentVolume // volumes of the class that name no claim
	nodes  []map[string]string        // the labels of each node
}

// actions bring a claim closer to being bound. At most one of begin and finish is set.
type actions struct {
	begin  *corev1.PersistentVolume // write the claim into this volume, then finish
	finish *corev1.PersistentVolume // write the missing parts of this volume's binding
	free   []*corev1.PersistentVolume
}

// plan decides on the actions for a claim.
func plan(v view) actions {
	switch {
	case v.class == nil || v.class.Provisioner != v.driver || !v.pooled:
		return actions{}
	case v.claim.Spec.VolumeName != "":
		return actions{free: v.stray(), finish: v.unfinished()}
	case v.claim.DeletionTimestamp != nil || v.claim.Status.Phase == corev1.ClaimLost:
		return actions{}
	}
	if slices.ContainsFunc(v.named, func(one *corev1.PersistentVolume) bool { return !v.wasEarlier(one) }) {
		return actions{finish: v.chosen()}
	}
	if v.mayBegin() {
		return actions{begin: match(v)}
	}
	return actions{}
}

// mayBegin reports whether the binder may choose a volume for the claim.
func (v view) mayBegin() bool {
	_, isProvisioned := v.claim.Annotations[storage.AnnStorageProvisioner] // Its volume is being created.
	return !isProvisioned && !v.waits() && !v.hasSource()
}

// hasSource reports whether the claim has a data source. Kubernetes' matching ignores the source, and would bind the
// claim to an empty volume.
func (v view) hasSource() bool {
	return v.claim.Spec.DataSource != nil || v.claim.Spec.DataSourceRef != nil
}

// waits reports whether the scheduler chooses the class's volumes.
func (v view) waits() bool {
	return v.class.VolumeBindingMode != nil && *v.class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// chosen returns the volume that names the claim, if its binding can be finished. The binding of a claim with a data
// source is left to Kubernetes. A volume that names the claim without its UID was reserved by a person: Kubernetes
// prefers it to all others and binds it.
func (v view) chosen() *corev1.PersistentVolume {
	if v.hasSource() {
		return nil
	}
	for _, one := range v.named {
		if one.Spec.ClaimRef.UID == "" {
			return nil
		}
	}
	for _, one := range v.named {
		if v.owns(one) && v.isOurs(one) && wasSeen(one) && compatible(v.claim, one) {
			return one
		}
	}
	return nil
}

// unfinished returns the claim's volume if only the claim's status is missing. A volumeName that a person wrote is left
// to Kubernetes.
func (v view) unfinished() *corev1.PersistentVolume {
	isComplete := metav1.HasAnnotation(v.claim.ObjectMeta, storage.AnnBindCompleted)
	if !isComplete || v.claim.Status.Phase != corev1.ClaimPending || v.claim.DeletionTimestamp != nil {
		return nil
	}
	for _, one := range v.named {
		if one.Name == v.claim.Spec.VolumeName && v.owns(one) && v.isOurs(one) && wasSeen(one) {
			return one
		}
	}
	return nil
}

// stray returns the volumes that name the claim although it is bound to another. The claim never used them: its
// volumeName cannot change.
func (v view) stray() (all []*corev1.PersistentVolume) {
	for _, one := range v.named {
		isStray := one.Name != v.claim.Spec.VolumeName && v.owns(one) && v.isOurs(one)
		if isStray && metav1.HasAnnotation(one.ObjectMeta, storage.AnnBoundByController) && !isOver(one) {
			all = append(all, one)
		}
	}
	return all
}

// owns reports whether a volume names this very claim, and not an earlier claim of the same name.
func (v view) owns(one *corev1.PersistentVolume) bool {
	return one.Spec.ClaimRef != nil && one.Spec.ClaimRef.UID == v.claim.UID
}

// wasEarlier reports whether a volume belonged to an earlier claim of the name and cannot be bound. A volume of the
// policy Retain stays in this state until a person acts.
func (v view) wasEarlier(one *corev1.PersistentVolume) bool {
	return !v.owns(one) && one.Spec.ClaimRef.UID != "" && isOver(one)
}

func (v view) isOurs(one *corev1.PersistentVolume) bool {
	return one.Spec.CSI != nil && one.Spec.CSI.Driver == v.driver && one.DeletionTimestamp == nil
}

// wasSeen reports whether Kubernetes' controller knows the volume: only the controller writes Available, and Bound is
// written after that.
func wasSeen(one *corev1.PersistentVolume) bool {
	return one.Status.Phase == corev1.VolumeAvailable || one.Status.Phase == corev1.VolumeBound
}

// isOver reports whether the volume is out of use. Its deletion may have begun.
func isOver(one *corev1.PersistentVolume) bool {
	return one.Status.Phase == corev1.VolumeReleased || one.Status.Phase == corev1.VolumeFailed ||
		one.DeletionTimestamp != nil
}
