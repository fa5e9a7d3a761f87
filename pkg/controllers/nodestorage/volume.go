package nodestorage

import (
	"fmt"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storage "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// wipePolicyAnnotation on a PersistentVolume has its volume's wipe policy, in case the offer is lost.
const wipePolicyAnnotation = "stowage.dev/wipe-policy"

// nobody is the name of a nonexistent claim in a PersistentVolume that no claim may be bound to.
const nobody = "stowage-volume-is-being-deleted"

// newOffer returns an offer of a volume in a class, with a unique name.
func newOffer(v v1alpha1.LocalVolumeStatus, c *class) v1alpha1.VolumeOffer {
	return v1alpha1.VolumeOffer{
		Volume: v.Name, PersistentVolume: "local-" + uuid.NewString(), StorageClassName: c.name, Path: v.Path,
		Capacity:   *resource.NewQuantity(v.Capacity.Bytes(), resource.BinarySI),
		VolumeMode: v.VolumeMode, ReclaimPolicy: c.reclaim, WipePolicy: c.WipePolicy,
	}
}

// persistentVolume returns the object for an offer.
func persistentVolume(node, hostname string, o v1alpha1.VolumeOffer) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.PersistentVolume, Finalizers: []string{v1alpha1.LocalVolumeFinalizer},
			Labels: map[string]string{corev1.LabelHostname: hostname},
			Annotations: map[string]string{
				storage.AnnDynamicallyProvisioned: v1alpha1.LocalVolumeProvisioner, v1alpha1.NodeStorageAnnotation: node,
				v1alpha1.LocalVolumeAnnotation: string(o.Volume), wipePolicyAnnotation: string(o.WipePolicy),
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.Capacity},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: o.ReclaimPolicy, StorageClassName: o.StorageClassName, VolumeMode: &o.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: o.Path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{hostname}},
					},
				}},
			}},
		},
	}
}

// offerOf returns the offer for which one of our PersistentVolumes was created.
func offerOf(pv *corev1.PersistentVolume) (v1alpha1.VolumeOffer, error) {
	o := v1alpha1.VolumeOffer{
		Volume: v1alpha1.VolumeName(pv.Annotations[v1alpha1.LocalVolumeAnnotation]), PersistentVolume: pv.Name,
		StorageClassName: pv.Spec.StorageClassName, Capacity: pv.Spec.Capacity[corev1.ResourceStorage],
		VolumeMode: corev1.PersistentVolumeFilesystem, ReclaimPolicy: pv.Spec.PersistentVolumeReclaimPolicy,
		WipePolicy: v1alpha1.WipePolicy(pv.Annotations[wipePolicyAnnotation]),
	}
	if pv.Spec.VolumeMode != nil {
		o.VolumeMode = *pv.Spec.VolumeMode
	}
	switch o.WipePolicy {
	case v1alpha1.WipeDiscard, v1alpha1.WipeZero, v1alpha1.WipeShred, v1alpha1.WipeSignatures, v1alpha1.WipeNone:
	default:
		o.WipePolicy = v1alpha1.WipeZero
	}
	if pv.Spec.Local == nil || o.Volume == "" || o.StorageClassName == "" ||
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		return o, fmt.Errorf("the PersistentVolume %s names a local volume, and is not of the form of one: it is left alone",
			pv.Name)
	}
	o.Path = pv.Spec.Local.Path
	return o, nil
}

// isFound reports whether a PersistentVolume is of a found volume, and returns its node.
func isFound(pv *corev1.PersistentVolume) (node string, ok bool) {
	node = pv.Annotations[v1alpha1.NodeStorageAnnotation]
	return node, node != "" && pv.Annotations[storage.AnnDynamicallyProvisioned] == v1alpha1.LocalVolumeProvisioner
}

// isOf reports whether a PersistentVolume with the name of an offer is of the offered volume. If a person has removed
// the annotation, our finalizer and the path, which cannot be changed, decide: otherwise the object would never be
// released, and its volume never be wiped.
func isOf(pv *corev1.PersistentVolume, o *v1alpha1.VolumeOffer) bool {
	if pv.Spec.Local == nil {
		return false
	}
	if named := pv.Annotations[v1alpha1.LocalVolumeAnnotation]; named != "" {
		return named == string(o.Volume)
	}
	return isHeld(pv) && pv.Spec.Local.Path == o.Path
}

// volumeOf returns the volume of a PersistentVolume. One without the annotation is of the offer with its name.
func volumeOf(pv *corev1.PersistentVolume, offers []v1alpha1.VolumeOffer) v1alpha1.VolumeName {
	if named := pv.Annotations[v1alpha1.LocalVolumeAnnotation]; named != "" {
		return v1alpha1.VolumeName(named)
	}
	for _, o := range offers {
		if o.PersistentVolume == pv.Name {
			return o.Volume
		}
	}
	return ""
}

// reserved returns a copy of an unclaimed PersistentVolume whose claimRef names a nonexistent claim. Kubernetes calls
// it Released and binds it to no claim, not even to one that names it.
func reserved(pv *corev1.PersistentVolume, namespace string) *corev1.PersistentVolume {
	pv = pv.DeepCopy()
	pv.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: nobody, UID: types.UID(uuid.NewString()),
	}
	return pv
}

// isFence reports whether a PersistentVolume is for no claim, as reserved returns it for the master's namespace. In
// another namespace, there may be a claim of that name.
func isFence(pv *corev1.PersistentVolume, namespace string) bool {
	return isClaimed(pv) && pv.Spec.ClaimRef.Name == nobody && pv.Spec.ClaimRef.Namespace == namespace
}

func isClaimed(pv *corev1.PersistentVolume) bool {
	return pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != ""
}

// isFreed reports whether the claim of a PersistentVolume is gone. The phase Failed only follows Released.
func isFreed(pv *corev1.PersistentVolume) bool {
	return isClaimed(pv) && (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed)
}

func isBound(pv *corev1.PersistentVolume) bool { return isClaimed(pv) && !isFreed(pv) }

func isHeld(pv *corev1.PersistentVolume) bool {
	return controllerutil.ContainsFinalizer(pv, v1alpha1.LocalVolumeFinalizer)
}
