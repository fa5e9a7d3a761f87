package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// match returns the smallest ready volume that fits the claim by Kubernetes' own matching, or nil. Kubernetes ignores
// nodes for a claim that binds immediately; match leaves out a volume that no node can use.
func match(v view) *corev1.PersistentVolume {
	from := newReach(v.nodes)
	ready := slices.DeleteFunc(slices.Clone(v.others), func(one *corev1.PersistentVolume) bool {
		return one.Spec.ClaimRef != nil || !v.isOurs(one) || !compatible(v.claim, one) || !from.isReachable(one)
	})
	best, err := storage.FindMatchingVolume(v.claim, ready, nil, nil, false, true)
	if err != nil {
		return nil // The claim's selector is invalid. The API server refuses such a claim.
	}
	return best
}

// compatible reports whether the volume has the modes and attributes class that the claim asks for. Its size, class and
// labels are checked elsewhere.
func compatible(claim *corev1.PersistentVolumeClaim, one *corev1.PersistentVolume) bool {
	return storage.CheckAccessModes(claim, one) &&
		!storage.CheckVolumeModeMismatches(&claim.Spec, &one.Spec) &&
		ptr.Deref(claim.Spec.VolumeAttributesClassName, "") == ptr.Deref(one.Spec.VolumeAttributesClassName, "") &&
		!metav1.HasAnnotation(one.ObjectMeta, preResize)
}
