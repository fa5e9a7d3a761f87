package volumeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namesakes returns the PersistentVolumes in the cache that have the volume handle. Normally it is one. There are more
// if a driver assigns a handle twice, or if a person creates a second PersistentVolume for a volume.
func namesakes(ctx context.Context, cache client.Reader, driver, handle string) ([]corev1.PersistentVolume, error) {
	var all corev1.PersistentVolumeList
	of := client.MatchingFields{handleIndex: driver + "^" + handle}
	err := cache.List(ctx, &all, of, client.UnsafeDisableDeepCopy)
	return all.Items, err
}

// take notes that the driver returned the handle for a slot. It fails if another slot or PersistentVolume has the
// handle: two claims would share a volume.
func (f *filler) take(ctx context.Context, key slotKey, handle string) error {
	f.mu.Lock()
	other, taken := f.handles[handle]
	isAnothers := taken && other != key.slot
	if !isAnothers {
		f.handles[handle] = key.slot
		f.of(key).handle = handle
	}
	f.mu.Unlock()
	if isAnothers {
		return fmt.Errorf("the driver answered to %s with the handle %q, as it did to %s: two claims would get one volume,"+
			" so that none is made of it. Mend the driver", key.slot, handle, other)
	}
	all, err := namesakes(ctx, f.client, f.driver.Driver(), handle)
	for i := range all {
		if name := all[i].Name; name != key.slot {
			return fmt.Errorf("the driver answered to %s with the handle %q, which the PersistentVolume %s has: two claims "+
				"would"+
				" get one volume, so that none is made of it. Take the slot out of the set's status, if that one is to stay",
				key.slot, handle, name)
		}
	}
	return err
}

// isOf reports whether a PersistentVolume is of the driver's volume with the handle.
func (f *filler) isOf(v *corev1.PersistentVolume, handle string) bool {
	return v.Spec.CSI != nil && v.Spec.CSI.Driver == f.driver.Driver() && v.Spec.CSI.VolumeHandle == handle
}

// confirm checks that the PersistentVolume of a slot that exists already is of the volume that the driver has returned.
// Otherwise the slot stays: it is all that is known of the volume.
func (f *filler) confirm(ctx context.Context, key slotKey, handle string) error {
	there := &corev1.PersistentVolume{}
	if err := f.live.Get(ctx, client.ObjectKey{Name: key.slot}, there); err != nil || f.isOf(there, handle) {
		return err
	}
	other := ""
	if there.Spec.CSI != nil {
		other = there.Spec.CSI.VolumeHandle
	}
	return fmt.Errorf("the driver answered to %s with the handle %q, and the PersistentVolume of that name has %q: if"+
		" nobody uses the first volume, delete it in the storage, and take the slot out of the set's status",
		key.slot, handle, other)
}

// isElsewhere reports whether another PersistentVolume has the same volume handle, and either is not being deleted or
// has a claim. The cache may show a PersistentVolume that is gone, so each is read live.
func (r *remover) isElsewhere(ctx context.Context, v *corev1.PersistentVolume) (bool, error) {
	all, err := namesakes(ctx, r.client, v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle)
	for i := range all {
		if all[i].Name == v.Name {
			continue
		}
		other := &corev1.PersistentVolume{}
		err := r.live.Get(ctx, client.ObjectKeyFromObject(&all[i]), other)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil && other.UID == all[i].UID && (other.DeletionTimestamp == nil || isInUse(other)) {
			return true, nil
		}
	}
	return false, err
}

// isInUse reports whether a PersistentVolume is bound to a claim or being bound. Kubernetes keeps a deleted
// PersistentVolume while its claim exists, and pods can use it.
func isInUse(v *corev1.PersistentVolume) bool {
	return v.Spec.ClaimRef != nil && v.Status.Phase != corev1.VolumeReleased && v.Status.Phase != corev1.VolumeFailed
}
