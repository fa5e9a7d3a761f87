package nodestorage

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// change writes existing PersistentVolumes. If a write is refused, the spec that is written next has no changes for its
// volume. A wipe, for example, must not begin while a claim may still be bound to another PersistentVolume of the
// volume.
func (r *reconciler) change(ctx context.Context, v *view, a *actions) error {
	for _, step := range []struct {
		volumes []*corev1.PersistentVolume
		write   func(context.Context, *corev1.PersistentVolume) error
	}{{a.reserve, r.reserve}, {a.remove, r.remove}, {a.release, r.release}} {
		for _, pv := range step.volumes {
			before := len(a.refused)
			if err := a.bear(pv, step.write(ctx, pv)); err != nil {
				return err
			}
			if len(a.refused) > before {
				a.hold(v.storage, volumeOf(pv, v.storage.Spec.Offers))
			}
		}
	}
	return nil
}

func (r *reconciler) reserve(ctx context.Context, pv *corev1.PersistentVolume) error {
	return r.write.Update(ctx, reserved(pv, r.Namespace))
}

func (r *reconciler) remove(ctx context.Context, pv *corev1.PersistentVolume) error {
	return r.write.Delete(ctx, pv, client.Preconditions{UID: &pv.UID, ResourceVersion: &pv.ResourceVersion})
}

func (r *reconciler) release(ctx context.Context, pv *corev1.PersistentVolume) error {
	pv = pv.DeepCopy()
	controllerutil.RemoveFinalizer(pv, v1alpha1.LocalVolumeFinalizer)
	return client.IgnoreNotFound(r.write.Update(ctx, pv))
}

// bear notes and reports an error that concerns one object only. It returns any other error.
func (a *actions) bear(about client.Object, err error) error {
	if !isOfOne(err) {
		return err
	}
	a.told = append(a.told, problem{about, "PersistentVolumeRefused", err.Error()})
	a.refused = append(a.refused, err)
	return nil
}

// hold reverts the plan for a volume to the written state.
func (a *actions) hold(storage *v1alpha1.NodeStorage, volume v1alpha1.VolumeName) {
	if a.spec == nil {
		return
	}
	a.spec.Offers = keep(a.spec.Offers, storage.Spec.Offers,
		func(o v1alpha1.VolumeOffer) bool { return o.Volume == volume })
	a.spec.DeleteOperations = keep(a.spec.DeleteOperations, storage.Spec.DeleteOperations,
		func(r v1alpha1.DeleteRequest) bool { return r.Volume == volume })
	isHeld := func(name string) bool { return name == string(volume) }
	a.reclaim = strings.Join(keep(names(a.reclaim), names(storage.Annotations[v1alpha1.ReclaimAnnotation]), isHeld), ",")
}

// keep replaces the planned elements that match by the written ones.
func keep[T any](planned, written []T, is func(T) bool) []T {
	planned = slices.DeleteFunc(planned, is)
	for _, one := range written {
		if is(one) {
			planned = append(planned, one)
		}
	}
	return planned
}

// isOfOne reports whether the API server or a policy refused one object. Others may be accepted.
func isOfOne(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// isRefusal reports whether the error proves that nothing was created.
func isRefusal(err error) bool {
	return isOfOne(err) || apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err)
}

// isUnwritten reports whether the error proves that an existing object was not changed.
func isUnwritten(err error) bool {
	return isRefusal(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}
