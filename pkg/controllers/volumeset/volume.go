package volumeset

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// provisionedBy is the annotation by which csi-provisioner recognizes the volumes to delete after their release.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// request returns the request to the driver for a slot.
func request(slot v1alpha1.VolumeSlot, order v1alpha1.VolumeOrder) csiclient.Request {
	parameters := map[string]string{reserved + "pv/name": slot.Name}
	maps.Copy(parameters, order.Class.Parameters)
	spec := order.Template.Spec
	return csiclient.Request{
		Name: slot.Name, SizeBytes: spec.Capacity.Value(), AccessModes: spec.AccessModes, VolumeMode: spec.VolumeMode,
		FSType: order.Class.FSType, MountOptions: mountOptions(order), Parameters: parameters,
		Mutable: order.Class.MutableParameters, Segments: slot.Segments,
	}
}

// mountOptions returns the template's mount options, or the class's if the template has none.
func mountOptions(order v1alpha1.VolumeOrder) []string {
	if own := order.Template.Spec.MountOptions; len(own) > 0 {
		return own
	}
	return order.Class.MountOptions
}

// persistentVolume returns the object for the volume that the driver created for a slot.
func persistentVolume(
	driver string, set *v1alpha1.PersistentVolumeSet, name string, order v1alpha1.VolumeOrder, v csiclient.Volume,
) *corev1.PersistentVolume {
	spec, mode := order.Template.Spec, order.Template.Spec.VolumeMode
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(v.SizeBytes, resource.BinarySI)},
			AccessModes: spec.AccessModes, VolumeMode: &mode, MountOptions: mountOptions(order),
			StorageClassName: spec.StorageClassName, PersistentVolumeReclaimPolicy: spec.PersistentVolumeReclaimPolicy,
			NodeAffinity: affinity(v.Places),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: v.Handle, VolumeAttributes: v.Context,
			}},
		},
	}
	if name := spec.VolumeAttributesClassName; name != "" {
		pv.Spec.VolumeAttributesClassName = &name
	}
	if mode != corev1.PersistentVolumeBlock {
		pv.Spec.CSI.FSType = order.Class.FSType
	}
	for key, value := range order.Template.Metadata.Labels {
		pv.Labels[key] = string(value)
	}
	maps.Copy(pv.Annotations, order.Template.Metadata.Annotations)
	pv.Annotations[provisionedBy] = driver
	pv.Annotations[v1alpha1.VolumeSetAnnotation] = string(set.UID)
	pv.Annotations[v1alpha1.TemplateAnnotation] = templateDigest(order.Template)
	pv.Finalizers = []string{v1alpha1.VolumeSlotFinalizer}
	if spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		pv.Finalizers = []string{v1alpha1.VolumeSetFinalizer}
	}
	return pv
}
