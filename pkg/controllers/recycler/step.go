package recycler

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// take carries out one step, with at most one write.
func (r *reconciler) take(ctx context.Context, v view, next step, why string) error {
	switch next {
	case makeClaim:
		return r.write.Create(ctx, r.newClaim(v))
	case makePod:
		return r.write.Create(ctx, r.newPod(v))
	case endPod:
		return r.write.Delete(ctx, v.pod, client.Preconditions{UID: &v.pod.UID})
	case freePod:
		controllerutil.RemoveFinalizer(v.pod, v1alpha1.RecyclerFinalizer)
		return r.write.Update(ctx, v.pod)
	case endClaim:
		return r.write.Delete(ctx, v.claim, client.Preconditions{UID: &v.claim.UID})
	case begin, point, passed, broke:
		return r.note(ctx, v, next, why)
	case drop:
		delete(v.volume.Annotations, v1alpha1.RecyclingAnnotation)
		return r.write.Update(ctx, v.volume)
	case noteClass:
		return r.noteClass(ctx, v.volume)
	case giveBack:
		return r.giveBack(ctx, v)
	case giveUp:
		return r.giveUp(ctx, v, why)
	case nothing, wait, work, refuse:
	}
	return nil
}

// note writes the state of the volume's recycling.
func (r *reconciler) note(ctx context.Context, v view, next step, why string) error {
	one := record{}
	if v.record != nil {
		one = *v.record
	}
	switch next {
	case begin:
		one.Name, one.State, one.Released, one.Claim = r.newName(), scrubbing, v.volume.Spec.ClaimRef.UID, ""
	case point:
		one.Claim = v.claim.UID
		v.volume.Spec.ClaimRef = &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: r.Namespace, Name: v.claim.Name, UID: v.claim.UID,
		}
	case passed:
		one.State, one.Message = clean, ""
	default:
		one.State, one.Message, one.Failures = failed, why, one.Failures+1
	}
	if err := r.save(ctx, v.volume, one); err != nil {
		return err
	}
	r.metrics.count(v, next)
	if next == broke {
		text := fmt.Sprintf("scrub %d of at most %d failed: %s", one.Failures, r.Attempts, why)
		r.say(v, corev1.EventTypeWarning, v1alpha1.ScrubFailed, text)
	}
	return nil
}

// save writes a record with the resource version of the volume that was seen.
func (r *reconciler) save(ctx context.Context, v *corev1.PersistentVolume, one record) error {
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&v.ObjectMeta, v1alpha1.RecyclingAnnotation, string(text))
	return r.write.Update(ctx, v)
}

// giveBack clears the claimRef and the record, so that Kubernetes makes the volume Available.
func (r *reconciler) giveBack(ctx context.Context, v view) error {
	v.volume.Spec.ClaimRef = nil
	delete(v.volume.Annotations, v1alpha1.RecyclingAnnotation)
	delete(v.volume.Annotations, storage.AnnBoundByController)
	if err := r.write.Update(ctx, v.volume); err != nil {
		return err
	}
	r.memory.forget(v.volume.Name)
	r.say(v, corev1.EventTypeNormal, "Recycled", "the volume was scrubbed, and is there for a new claim")
	return nil
}

// giveUp writes the phase Failed, which Kubernetes leaves unchanged.
func (r *reconciler) giveUp(ctx context.Context, v view, why string) error {
	text := fmt.Sprintf("all %d scrubs failed, the last one since: %s. Remove the annotation %s to have the volume "+
		"scrubbed again",
		v.record.Failures, why, v1alpha1.RecyclingAnnotation)
	v.volume.Status.Phase, v.volume.Status.Message = corev1.VolumeFailed, text
	if err := r.write.Status().Update(ctx, v.volume); err != nil {
		return err
	}
	r.metrics.count(v, giveUp)
	r.say(v, corev1.EventTypeWarning, "RecycleFailed", text)
	return nil
}
