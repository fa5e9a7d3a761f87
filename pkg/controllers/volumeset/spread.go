package volumeset

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// ranking orders removable volumes: those of a lower rank are deleted first.
type ranking func(v *corev1.PersistentVolume) int

// first returns the removable volumes to delete first, at most the given number. Those of a lower rank come first.
// Within a rank, each volume is from a place that then has the most unbound volumes: a new volume is placed where there
// are the fewest, and a deletion must not undo that. If several places have the most, the largest volume goes.
func (c *census) first(set *v1alpha1.PersistentVolumeSet, number int, rank ranking) []*corev1.PersistentVolume {
	if number <= 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(c.removable), func(a, b *corev1.PersistentVolume) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), bySize(a, b))
	})
	left, level := c.spread(set), make(map[*corev1.PersistentVolume]int, len(sorted))
	for _, v := range sorted { // A volume's level is the number of volumes in its place when its turn comes.
		key := placeOf(v).key()
		level[v] = left[key]
		left[key]--
	}
	slices.SortStableFunc(sorted, func(a, b *corev1.PersistentVolume) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(level[b], level[a]))
	})
	return sorted[:min(number, len(sorted))]
}

// spread returns the number of unbound volumes in each place, by the place's key. It includes slots, whose volumes are
// expected there.
func (c *census) spread(set *v1alpha1.PersistentVolumeSet) map[string]int {
	uses := map[string]int{}
	for _, v := range c.unclaimed {
		uses[placeOf(v).key()]++
	}
	for _, slot := range set.Status.Slots {
		if !c.listed[slot.Name] {
			uses[place(slot.Segments).key()]++
		}
	}
	return uses
}

// bySize sorts the largest volumes first, and the oldest first among equals.
func bySize(a, b *corev1.PersistentVolume) int {
	return cmp.Or(b.Spec.Capacity.Storage().Cmp(*a.Spec.Capacity.Storage()),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// alike ranks all volumes alike.
func alike(*corev1.PersistentVolume) int { return 0 }

// outdatedFirst ranks unfit volumes of earlier templates first, then other volumes of earlier templates, then all
// others.
func outdatedFirst(set *v1alpha1.PersistentVolumeSet) ranking {
	digest := templateDigest(set.Spec.Template)
	return func(v *corev1.PersistentVolume) int {
		switch {
		case !isOutdated(set, v, digest):
			return 2
		case fits(set.Spec.Template.Spec, v):
			return 1
		}
		return 0
	}
}
