package volumeset

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// actions bring a set closer to its spec.
type actions struct {
	create   int                        // so many new slots
	withdraw int                        // so many slots, as far as nobody has asked for their volumes
	remove   []*corev1.PersistentVolume // these unbound volumes
	// surplus reports whether more volumes are unbound than the minimum, which is borne for a while.
	surplus bool
}

// plan decides what to do. Slots is how many volumes may be in the making at a time; due says that a surplus has been
// borne for long enough.
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
		a.remove = take(c.removable, c.total-c.leaving-maximum, bySize)
	case missing <= 0: // The obsolete ones are nothing to claims of the template.
		a.remove = take(c.removable, c.obsolete+surplus, outdatedFirst(set))
	case c.outdated > 0 && c.slots == 0 && c.leaving == 0 && c.total >= maximum:
		a.remove = take(c.removable, 1, outdatedFirst(set)) // It makes room for its successor.
	}
	return a
}

// take returns so many of the volumes, the first in the order.
func take(from []*corev1.PersistentVolume, number int,
	order func(a, b *corev1.PersistentVolume) int) []*corev1.PersistentVolume {
	sorted := slices.SortedFunc(slices.Values(from), order)
	return sorted[:max(0, min(number, len(sorted)))]
}

// bySize puts the largest first, and among equals the oldest.
func bySize(a, b *corev1.PersistentVolume) int {
	return cmp.Or(b.Spec.Capacity.Storage().Cmp(*a.Spec.Capacity.Storage()),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// outdatedFirst puts volumes of earlier templates before all others, and before these the ones that are unfit now.
func outdatedFirst(set *v1alpha1.PersistentVolumeSet) func(a, b *corev1.PersistentVolume) int {
	digest := templateDigest(set.Spec.Template)
	rank := func(v *corev1.PersistentVolume) int {
		switch {
		case !isOutdated(set, v, digest):
			return 2
		case fits(set.Spec.Template.Spec, v):
			return 1
		}
		return 0
	}
	return func(a, b *corev1.PersistentVolume) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), bySize(a, b)) }
}
