package binder

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/controllers/volumeset"
)

// writer makes the writes of a binding. Each uses the resource version of the given object.
type writer struct{ client client.Client }

// begin writes the claim into the volume.
func (w writer) begin(ctx context.Context, v *corev1.PersistentVolume,
	claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	named, _, err := storage.GetBindVolumeToClaim(v, claim)
	if err != nil {
		return nil, err
	}
	return named, w.client.Update(ctx, named)
}

// finish writes the missing parts of a binding whose volume names the claim. The order is Kubernetes' own, so any
// controller can complete a partial binding.
func (w writer) finish(ctx context.Context, v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if v.Status.Phase != corev1.VolumeBound {
		v = v.DeepCopy()
		v.Status.Phase, v.Status.Message = corev1.VolumeBound, ""
		if err := w.client.Status().Update(ctx, v); err != nil {
			return err
		}
	}
	claim = claim.DeepCopy()
	if claim.Spec.VolumeName == "" {
		claim.Spec.VolumeName = v.Name
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storage.AnnBoundByController, "yes")
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storage.AnnBindCompleted, "yes")
		if err := w.client.Update(ctx, claim); err != nil {
			return err
		}
	}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes, claim.Status.Capacity = v.Spec.AccessModes, v.Spec.Capacity
	claim.Status.CurrentVolumeAttributesClassName = v.Spec.VolumeAttributesClassName
	return w.client.Status().Update(ctx, claim)
}

// free removes the claim from the volume. It writes the phase Pending first. Kubernetes' controller writes Available
// once it has seen the volume without the claim, and no binding begins before. A set's volume returns to the set.
func (w writer) free(ctx context.Context, v *corev1.PersistentVolume) error {
	v = v.DeepCopy()
	if v.Status.Phase != corev1.VolumePending {
		v.Status.Phase, v.Status.Message = corev1.VolumePending, ""
		if err := w.client.Status().Update(ctx, v); err != nil {
			return err
		}
	}
	v.Spec.ClaimRef = nil
	delete(v.Annotations, storage.AnnBoundByController)
	volumeset.Regain(v)
	return w.client.Update(ctx, v)
}
