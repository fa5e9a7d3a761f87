package volumeset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// provisionerFinalizer is on a PersistentVolume whose volume csi-provisioner is going to delete.
const provisionerFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"

// remove starts the deletion of unbound volumes. The resource version is a precondition, so a volume that has been
// bound since is not deleted.
func (r *reconciler) remove(ctx context.Context, volumes []*corev1.PersistentVolume) error {
	for _, v := range volumes {
		seen := client.Preconditions{UID: &v.UID, ResourceVersion: &v.ResourceVersion}
		if err := r.client.Delete(ctx, v, seen); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// remover finishes the deletion of PersistentVolumes with our finalizer, whoever started it. It removes the finalizer
// from those that csi-provisioner is going to delete, and that of the slot from those of policy Retain, so a bound
// volume needs no manager. No PersistentVolume whose volume stays loses its last finalizer of ours before its slot is
// gone.
type remover struct {
	client  client.Client
	live    client.Reader // bypasses the cache
	driver  Driver
	timeout time.Duration // of each request to the driver
	now     func() time.Time
	fresh   time.Duration // how long after a live read it acts on it
	shares  shares        // of the workers, by class: the storage of a class may hang
	events  events.EventRecorder
	failed  *undeleted
	changed func(ctx context.Context, v *corev1.PersistentVolume) // called when its sets must be reconciled again
}

// turnPause is how long a PersistentVolume waits while its class occupies its share of the workers, or while it has a
// slot.
const turnPause = 2 * time.Second

// Reconcile reconciles one PersistentVolume.
func (r *remover) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v := &corev1.PersistentVolume{}
	if err := r.client.Get(ctx, request.NamespacedName, v); err != nil {
		r.failed.forget(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.isToDo(v) {
		return ctrl.Result{}, nil
	}
	if next(v) == erase { // No live read before admission: thousands may wait.
		if !r.shares.admit(v.Spec.StorageClassName) {
			return ctrl.Result{RequeueAfter: turnPause}, nil
		}
		defer r.shares.leave(v.Spec.StorageClassName)
	}
	// The decision to delete data is made on a live read.
	read := r.now()
	if err := r.live.Get(ctx, request.NamespacedName, v); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.isToDo(v) {
		return ctrl.Result{}, nil
	}
	return r.end(ctx, v, read)
}

// end takes the next step for a PersistentVolume that was read past the cache, not before the given time.
func (r *remover) end(ctx context.Context, v *corev1.PersistentVolume, read time.Time) (ctrl.Result, error) {
	switch next(v) {
	case wait:
		return ctrl.Result{}, nil
	case fence:
		return r.update(ctx, fenced(v))
	case erase:
		if err := r.erase(ctx, v, read); err != nil {
			return ctrl.Result{}, err
		}
	case keep:
		hasSlot, err := r.hasSlot(ctx, v)
		if err != nil {
			return ctrl.Result{}, err
		}
		if hasSlot {
			return ctrl.Result{RequeueAfter: turnPause}, nil
		}
	}
	if isLeaving(v) {
		controllerutil.RemoveFinalizer(v, v1alpha1.VolumeSetFinalizer)
		if isNobodys(v) {
			controllerutil.RemoveFinalizer(v, provisionerFinalizer)
		}
	}
	controllerutil.RemoveFinalizer(v, v1alpha1.VolumeSlotFinalizer)
	return r.update(ctx, v)
}

// update writes a PersistentVolume under the resource version that was read.
func (r *remover) update(ctx context.Context, v *corev1.PersistentVolume) (ctrl.Result, error) {
	err := r.client.Update(ctx, v)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: firstPause}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// erase deletes the volume of a PersistentVolume, unless another PersistentVolume has the same volume. A process that
// was stopped since it read them looks again: a person may have created another one meanwhile.
func (r *remover) erase(ctx context.Context, v *corev1.PersistentVolume, read time.Time) error {
	if isElsewhere, err := r.isElsewhere(ctx, v); err != nil || isElsewhere {
		return err
	}
	if r.now().Sub(read) > r.fresh {
		return fmt.Errorf("the volume of %s was not deleted: %w", v.Name, errOld)
	}
	call, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := r.driver.Delete(call, v.Spec.CSI.VolumeHandle); err != nil {
		err = fmt.Errorf("the volume of %s was not deleted: %s", v.Name, csiclient.Message(err))
		if ctx.Err() == nil {
			r.tell(ctx, v, err.Error())
		}
		return err
	}
	r.failed.forget(v.Name)
	return nil
}

func (r *remover) isToDo(v *corev1.PersistentVolume) bool {
	return isEnding(v) && v.Spec.CSI != nil && v.Spec.CSI.Driver == r.driver.Driver()
}

// isEnding reports whether a PersistentVolume has a finalizer that the remover is to remove.
func isEnding(o client.Object) bool {
	v, ok := o.(*corev1.PersistentVolume)
	return ok && (isLeaving(v) || controllerutil.ContainsFinalizer(v, v1alpha1.VolumeSlotFinalizer))
}

// isLeaving reports whether a PersistentVolume has our finalizer and is being deleted or handed over.
func isLeaving(v *corev1.PersistentVolume) bool {
	return controllerutil.ContainsFinalizer(v, v1alpha1.VolumeSetFinalizer) &&
		(v.DeletionTimestamp != nil || isHandedOver(v))
}

// isHandedOver reports whether csi-provisioner deletes the volume once its claim is gone. csi-provisioner puts its
// finalizer on bound volumes.
func isHandedOver(v *corev1.PersistentVolume) bool {
	return v.Spec.ClaimRef != nil && slices.Contains(v.Finalizers, provisionerFinalizer) &&
		(v.Status.Phase == corev1.VolumeBound || v.Status.Phase == corev1.VolumeReleased ||
			v.Status.Phase == corev1.VolumeFailed)
}

// Regain returns an unused PersistentVolume from a claim to the set that created it, with the finalizers from before it
// was bound. csi-provisioner put its finalizer on the PersistentVolume meanwhile, and would remove it from released
// ones only.
func Regain(v *corev1.PersistentVolume) {
	if v.Annotations[v1alpha1.VolumeSetAnnotation] != "" &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		controllerutil.RemoveFinalizer(v, provisionerFinalizer)
		controllerutil.AddFinalizer(v, v1alpha1.VolumeSetFinalizer)
	}
}

// ending is the action for the volume of a PersistentVolume that is ending.
type ending int

const (
	wait  ending = iota // for another controller or a claim
	erase               // delete the volume, then remove the finalizer
	keep                // keep the volume, and remove our finalizer
	fence               // take the volume from the claim that it is reserved for, and wait
)

// next returns the action for a PersistentVolume that is ending.
func next(v *corev1.PersistentVolume) ending {
	if !isLeaving(v) {
		return keep // Only the finalizer of its slot is removed.
	}
	return fate(v)
}

// isNobodys reports whether a PersistentVolume that is being deleted names no claim. Kubernetes no longer binds it, and
// csi-provisioner removes its finalizer from released ones only. csi-provisioner adds the finalizer to a
// PersistentVolume that it last saw bound, without a resource version, so the finalizer may be added after the claim
// was removed.
func isNobodys(v *corev1.PersistentVolume) bool {
	return v.DeletionTimestamp != nil && v.Spec.ClaimRef == nil
}

// fate returns the action for the volume of a PersistentVolume that is being deleted or handed over.
func fate(v *corev1.PersistentVolume) ending {
	switch {
	case isReserved(v):
		return fence
	case isHandedOver(v):
		return keep // csi-provisioner deletes it.
	case slices.Contains(v.Finalizers, provisionerFinalizer) && !isNobodys(v):
		return wait // It is bound no more, or not yet.
	case isInUse(v):
		return wait // A claim holds it, and Kubernetes protects it.
	case v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		return keep
	}
	// If it was released, csi-provisioner has deleted the volume, or another client the object: a second deletion is
	// harmless.
	return erase
}
