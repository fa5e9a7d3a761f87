package volumeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namesakes are the PersistentVolumes of the cache that are of the storage's volume with the handle. There is one, as a
// rule: more are of a driver that gives a handle out twice, or of a person who wrote one for a volume that has one.
func namesakes(ctx context.Context, cache client.Reader, driver, handle string) ([]corev1.PersistentVolume, error) {
	var all corev1.PersistentVolumeList
	of := client.MatchingFields{handleIndex: driver + "^" + handle}
	err := cache.List(ctx, &all, of, client.UnsafeDisableDeepCopy)
	return all.Items, err
}

// take notes that the driver has answered to a slot with the handle. It fails when another volume has that: two claims
// would get one.
func (f *filler) take(ctx context.Context, key slotKey, handle string) error {
	f.mu.Lock()
	other, taken := f.handles[handle]
	if !taken {
		f.handles[handle] = key.slot
		f.of(key).handle = handle
	}
	f.mu.Unlock()
	if taken && other != key.slot {
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

// isElsewhere reports whether another PersistentVolume, which is there to stay or has a claim, is of the same volume of
// the storage. The cache may show one that is gone, for which no volume is kept.
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

// isInUse reports whether a claim has a PersistentVolume, or is getting it. Kubernetes keeps one that is deleted for as
// long as the claim is there, and pods use it.
func isInUse(v *corev1.PersistentVolume) bool {
	return v.Spec.ClaimRef != nil && v.Status.Phase != corev1.VolumeReleased && v.Status.Phase != corev1.VolumeFailed
}
