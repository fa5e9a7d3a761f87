package volumeset

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// hasSlot reports whether the set that created a PersistentVolume still has its slot. While it does, the
// PersistentVolume must not go before its volume: the manager would take it for one that was never created, and offer
// the volume to another claim, with the data of the first. The cache is believed if it shows the slot. That a slot is
// gone is read past the cache, and remains true, because a name is never used again.
func (r *remover) hasSlot(ctx context.Context, v *corev1.PersistentVolume) (bool, error) {
	var all v1alpha1.PersistentVolumeSetList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	for i := range all.Items {
		cached := &all.Items[i]
		if string(cached.UID) != v.Annotations[v1alpha1.VolumeSetAnnotation] {
			continue
		}
		if slotOf(cached, v.Name) != nil {
			return true, nil
		}
		set := &v1alpha1.PersistentVolumeSet{}
		err := r.live.Get(ctx, client.ObjectKeyFromObject(cached), set)
		return err == nil && slotOf(set, v.Name) != nil, client.IgnoreNotFound(err)
	}
	// The set is gone, or the cache is older than the set.
	var live v1alpha1.PersistentVolumeSetList
	if err := r.live.List(ctx, &live); err != nil {
		return false, err
	}
	for i := range live.Items {
		if slotOf(&live.Items[i], v.Name) != nil {
			return true, nil
		}
	}
	return false, nil
}

// isMarked reports whether a volume of the set still has the finalizer of its slot. A set that is deleted stays until
// none has: its manager may be taken away right after it.
func (o *round) isMarked() bool {
	isOne := func(v *corev1.PersistentVolume) bool {
		return v.Annotations[v1alpha1.VolumeSetAnnotation] == string(o.set.UID) &&
			controllerutil.ContainsFinalizer(v, v1alpha1.VolumeSlotFinalizer)
	}
	return slices.ContainsFunc(o.volumes, isOne) || slices.ContainsFunc(o.strays, isOne)
}
