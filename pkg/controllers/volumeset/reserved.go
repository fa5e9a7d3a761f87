package volumeset

import (
	"cmp"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nobody is the name of a nonexistent claim in a PersistentVolume that no claim may be bound to.
const nobody = "stowage-volume-is-being-deleted"

// isReserved reports whether a PersistentVolume that is being deleted waits for a claim that a person has named. The
// claim may never come. If it comes and names the PersistentVolume, Kubernetes still binds it.
func isReserved(v *corev1.PersistentVolume) bool {
	return v.DeletionTimestamp != nil && isInUse(v) && v.Spec.ClaimRef.UID == "" && v.Status.Phase != corev1.VolumeBound
}

// fenced returns a copy of a reserved PersistentVolume for a nonexistent claim. Kubernetes calls it Released, and
// binds it to no claim, not even to one that names it. Without a namespace, Kubernetes could not look for the claim.
func fenced(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	namespace := cmp.Or(v.Spec.ClaimRef.Namespace, metav1.NamespaceDefault)
	v = v.DeepCopy()
	v.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: nobody, UID: types.UID(uuid.NewString()),
	}
	return v
}
