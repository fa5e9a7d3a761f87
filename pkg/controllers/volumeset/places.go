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
	left, t := make([]int, len(from)), newTally(from, used)
	for i, p := range from {
		left[i] = room(p)
	}
	for range number {
		best := -1
		for i := range from {
			if left[i] > 0 && (best < 0 || t.uses[i] < t.uses[best]) {
				best = i
			}
		}
		if best < 0 {
			return chosen
		}
		left[best]--
		t.add(from[best], 1)
		chosen = append(chosen, from[best])
	}
	return chosen
}

// tally counts the volumes in each of several places, which are distinct. There may be ten thousand volumes and as many
// nodes, so a volume is looked up by key. It is compared with all places only if the numbers of segments differ.
type tally struct {
	from   []place
	uses   []int          // volumes by place
	at     map[string]int // the index of a place by its key
	isEven bool           // whether all places have the same number of segments
}

// newTally returns a tally of the volumes in the places.
func newTally(from, volumes []place) *tally {
	t := &tally{from: from, uses: make([]int, len(from)), at: make(map[string]int, len(from)), isEven: len(from) > 0}
	for i, p := range from {
		t.at[p.key()], t.isEven = i, t.isEven && len(p) == len(from[0])
	}
	for _, v := range volumes {
		t.add(v, 1)
	}
	return t
}

// add adds a number of volumes of place v to each place that they are in.
func (t *tally) add(v place, number int) {
	if t.isEven && len(v) == len(t.from[0]) {
		if i, ok := t.at[v.key()]; ok {
			t.uses[i] += number
		}
		return
	}
	for i, p := range t.from {
		if v.within(p) {
			t.uses[i] += number
		}
	}
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
