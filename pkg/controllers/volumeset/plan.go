package volumeset

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// actions bring a set closer to its spec.
type actions struct {
	create   int                        // number of new slots
	withdraw int                        // number of slots to give up, if their volumes were never requested
	remove   []*corev1.PersistentVolume // unbound volumes to delete
	// surplus reports whether more volumes are unbound than the minimum. A surplus is kept for a while.
	surplus bool
}

// plan decides what to do. Slots is the number of volumes that may be created concurrently. Due reports whether a
// surplus has been kept long enough.
func plan(set *v1alpha1.PersistentVolumeSet, c census, slots int, due bool) actions {
	minimum, maximum := int(set.Spec.MinimumReplicas), int(set.Spec.MaximumReplicas)
	if set.DeletionTimestamp != nil {
		return actions{remove: c.removable, withdraw: c.slots}
	}
	var a actions
	missing := minimum - c.current - c.coming() - c.short // More of the short ones would be of no use either.
	// total < maximum for the last of them: the proposal's own total <= maximum creates one too many. Slots whose
	// PersistentVolumes are there are in the status until this manager has ended them.
	a.create = max(0, min(missing, maximum-c.total, slots-c.coming(), v1alpha1.MaxSlots-c.slots-len(c.listed)))
	a.withdraw = max(0, min(c.coming(), -missing), min(c.slots, c.total-c.leaving-maximum))

	// What the set keeps is of this template: the lingering ones are no reason to give up others.
	surplus := max(0, min(c.unbound()-c.lingering-minimum, len(c.removable)-c.obsolete))
	a.surplus = surplus > 0
	if !due {
		surplus = min(surplus, c.outdated-c.obsolete)
	}
	switch {
	case c.total-c.leaving > maximum:
		a.remove = c.first(c.total-c.leaving-maximum, alike)
	case missing <= 0: // Claims of the template cannot use obsolete volumes.
		a.remove = c.first(c.obsolete+surplus, outdatedFirst(set))
	case c.outdated > 0 && c.slots == 0 && c.leaving == 0 && c.total >= maximum:
		a.remove = c.first(1, outdatedFirst(set)) // This makes room for its successor.
	}
	return a
}
