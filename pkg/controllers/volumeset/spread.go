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
func (c *census) first(number int, rank ranking) []*corev1.PersistentVolume {
	if number <= 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(c.removable), func(a, b *corev1.PersistentVolume) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), bySize(a, b))
	})
	left, level := c.spread(), make(map[*corev1.PersistentVolume]int, len(sorted))
	for _, v := range sorted { // A volume's level is the number of volumes in its place when its turn comes.
		p := placeOf(v)
		level[v] = left.in(p)
		left.add(p, -1)
	}
	slices.SortStableFunc(sorted, func(a, b *corev1.PersistentVolume) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(level[b], level[a]))
	})
	return sorted[:min(number, len(sorted))]
}

// spread counts unbound volumes in the places of the removable ones. Volumes that are reachable from everywhere are a
// place of their own.
type spread struct {
	places     *tally
	everywhere int
}

// spread returns the spread of the unbound volumes, counted as when places for new ones are chosen.
func (c *census) spread() *spread {
	var from []place
	known := map[string]bool{}
	for _, v := range c.removable {
		if p := placeOf(v); len(p) > 0 && !known[p.key()] {
			known[p.key()], from = true, append(from, p)
		}
	}
	s := &spread{places: newTally(from, nil)}
	for _, p := range c.occupied() {
		s.add(p, 1)
	}
	return s
}

// in returns the number of volumes in the place of a removable volume.
func (s *spread) in(p place) int {
	if len(p) == 0 {
		return s.everywhere
	}
	return s.places.uses[s.places.at[p.key()]]
}

func (s *spread) add(p place, number int) {
	if len(p) == 0 {
		s.everywhere += number
		return
	}
	s.places.add(p, number)
}

// occupied returns the places of the unbound volumes, and of the slots whose volumes are expected there. A slot whose
// PersistentVolume is there counts with that.
func (c *census) occupied() (all []place) {
	for _, v := range c.unclaimed {
		all = append(all, placeOf(v))
	}
	for _, p := range c.expected {
		all = append(all, p)
	}
	return all
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
