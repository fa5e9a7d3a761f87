package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// match is the smallest ready volume that fits the claim, as Kubernetes itself matches them, or nil.
// Kubernetes looks at no nodes for a claim that binds at once; here a volume that no node reaches is
// left out.
func match(v view) *corev1.PersistentVolume {
	ready := slices.DeleteFunc(slices.Clone(v.others), func(one *corev1.PersistentVolume) bool {
		return one.Spec.ClaimRef != nil || !v.isOurs(one) || !compatible(v.claim, one) || !isReachable(one, v.nodes)
	})
	best, err := storage.FindMatchingVolume(v.claim, ready, nil, nil, false, true)
	if err != nil {
		return nil // The claim's selector is none. The API server refuses such a claim.
	}
	return best
}

// compatible reports whether the volume is of the kind that the claim asks for. Its size, class and
// labels are looked at elsewhere.
func compatible(claim *corev1.PersistentVolumeClaim, one *corev1.PersistentVolume) bool {
	return storage.CheckAccessModes(claim, one) &&
		!storage.CheckVolumeModeMismatches(&claim.Spec, &one.Spec) &&
		ptr.Deref(claim.Spec.VolumeAttributesClassName, "") == ptr.Deref(one.Spec.VolumeAttributesClassName, "") &&
		!metav1.HasAnnotation(one.ObjectMeta, preResize)
}

// isReachable reports whether there is a node that the volume can be used on.
func isReachable(one *corev1.PersistentVolume, nodes []map[string]string) bool {
	if one.Spec.NodeAffinity == nil {
		return true
	}
	return slices.ContainsFunc(nodes,
		func(labels map[string]string) bool { return storage.CheckNodeAffinity(one, labels) == nil })
}
