package volumeset

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// place holds the topology segments of a place where a volume can be.
type place map[string]string

// places returns the distinct places of the nodes that run the driver and that the class allows. Labels are by node.
func places(driver string, nodes []storagev1.CSINode, labels map[string]map[string]string,
	allowed []corev1.TopologySelectorTerm) []place {
	var all []place
	known := map[string]bool{}
	for _, node := range nodes {
		for _, d := range node.Spec.Drivers {
			if d.Name != driver {
				continue
			}
			p := place{}
			for _, key := range d.TopologyKeys {
				if value, ok := labels[node.Name][key]; ok {
					p[key] = value
				}
			}
			if len(p) == len(d.TopologyKeys) && len(p) > 0 && !known[p.key()] && p.isAllowed(allowed) {
				all = append(all, p)
			}
			known[p.key()] = true
		}
	}
	return all
}

// isAllowed reports whether a class with these allowedTopologies allows the place.
func (p place) isAllowed(terms []corev1.TopologySelectorTerm) bool {
	if len(terms) == 0 {
		return true
	}
	return slices.ContainsFunc(terms, func(term corev1.TopologySelectorTerm) bool {
		for _, e := range term.MatchLabelExpressions {
			if !slices.Contains(e.Values, p[e.Key]) {
				return false
			}
		}
		return true
	})
}

// choose returns places for the given number of new volumes, or for fewer. Each is the least used place that has room.
func choose(from, used []place, number int, room func(place) int) (chosen []place) {
	left, uses := make([]int, len(from)), usesOf(from, used)
	for i, p := range from {
		left[i] = room(p)
	}
	for range number {
		best := -1
		for i := range from {
			if left[i] > 0 && (best < 0 || uses[i] < uses[best]) {
				best = i
			}
		}
		if best < 0 {
			return chosen
		}
		left[best]--
		for i, p := range from {
			if from[best].within(p) {
				uses[i]++
			}
		}
		chosen = append(chosen, from[best])
	}
	return chosen
}

// usesOf returns the number of volumes in each place. There may be ten thousand volumes and as many nodes, so a volume
// is looked up by key. It is compared with all places only if the numbers of segments differ.
func usesOf(from, volumes []place) []int {
	uses, at, isEven := make([]int, len(from)), make(map[string]int, len(from)), true
	for i, p := range from {
		at[p.key()], isEven = i, isEven && len(p) == len(from[0])
	}
	for _, v := range volumes {
		if isEven && len(from) > 0 && len(v) == len(from[0]) {
			if i, ok := at[v.key()]; ok {
				uses[i]++
			}
			continue
		}
		for i, p := range from {
			if v.within(p) {
				uses[i]++
			}
		}
	}
	return uses
}

// within reports whether a volume of place p is one of place q.
func (p place) within(q place) bool {
	for key, value := range q {
		if p[key] != value {
			return false
		}
	}
	return true
}

// placeOf returns the place in a volume's node affinity, or nil if it has none or several.
func placeOf(v *corev1.PersistentVolume) place {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil ||
		len(v.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return nil
	}
	p := place{}
	for _, e := range v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
			p[e.Key] = e.Values[0]
		}
	}
	return p
}

// used returns the places of the volumes that have no claim and are not being deleted.
func used(volumes []*corev1.PersistentVolume) (all []place) {
	for _, v := range volumes {
		if v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil {
			all = append(all, placeOf(v))
		}
	}
	return all
}

// affinity returns the node affinity of a volume that is reachable from these places. It returns nil if the list is
// empty: the volume is then reachable from everywhere.
func affinity(reachable []map[string]string) *corev1.VolumeNodeAffinity {
	if len(reachable) == 0 {
		return nil
	}
	var terms []corev1.NodeSelectorTerm
	for _, segments := range reachable {
		var term corev1.NodeSelectorTerm
		for _, key := range slices.Sorted(maps.Keys(segments)) {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{segments[key]},
			})
		}
		terms = append(terms, term)
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}
