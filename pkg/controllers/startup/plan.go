package startup

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// key returns the key of a driver's taint. The operator chooses its value and effect.
func key(driver string) string { return driver + "/agent-not-ready" }

// waits reports whether a node has the taint.
func waits(node *corev1.Node, driver string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key(driver) })
}

// serves reports whether the driver has registered on this very node. The kubelet writes the volume limit in the same
// update, or no limit for a driver that reports none.
func serves(node *corev1.Node, registration *storagev1.CSINode, driver string) bool {
	return lists(registration, driver) && slices.ContainsFunc(registration.OwnerReferences,
		func(owner metav1.OwnerReference) bool { return owner.UID == node.UID })
}

// lists reports whether the driver has registered.
func lists(registration *storagev1.CSINode, driver string) bool {
	return slices.ContainsFunc(registration.Spec.Drivers,
		func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// without returns the taints except the driver's.
func without(taints []corev1.Taint, driver string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key(driver) })
}
