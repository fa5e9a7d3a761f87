package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storage "k8s.io/component-helpers/storage/volume"
)

// nodeLabels are the labels of one node.
type nodeLabels = map[string]string

// reach finds out which volumes a node can use, for one decision. It compares a volume only with the nodes that have a
// label which the volume asks for: each of ten thousand volumes may be for another of a thousand nodes.
type reach struct {
	nodes    []nodeLabels
	labelled map[string]map[string][]nodeLabels // by key and value of a label; a key is added once a volume asks for it
	canUse   func(*corev1.PersistentVolume, nodeLabels) bool
}

func newReach(nodes []nodeLabels) *reach {
	return &reach{nodes: nodes, labelled: map[string]map[string][]nodeLabels{}, canUse: canUse}
}

// canUse reports whether a node can use the volume.
func canUse(one *corev1.PersistentVolume, node nodeLabels) bool {
	return storage.CheckNodeAffinity(one, node) == nil
}

// isReachable reports whether at least one node can use the volume.
func (r *reach) isReachable(one *corev1.PersistentVolume) bool {
	if one.Spec.NodeAffinity == nil || one.Spec.NodeAffinity.Required == nil {
		return true
	}
	canUse := func(node nodeLabels) bool { return r.canUse(one, node) }
	terms := one.Spec.NodeAffinity.Required.NodeSelectorTerms
	for i := range terms {
		for _, nodes := range r.candidates(&terms[i]) {
			if slices.ContainsFunc(nodes, canUse) {
				return true
			}
		}
	}
	return false
}

// candidates returns lists of nodes, among which are all that match the term.
func (r *reach) candidates(term *corev1.NodeSelectorTerm) [][]nodeLabels {
	if len(term.MatchExpressions) == 0 { // Without labels in the term, all nodes are alike.
		return [][]nodeLabels{r.nodes[:min(1, len(r.nodes))]}
	}
	best, number := [][]nodeLabels{r.nodes}, len(r.nodes)
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		if e.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		if lists, size := r.with(e.Key, e.Values); size < number {
			best, number = lists, size
		}
	}
	return best
}

// with returns the nodes whose label has one of the values, in one list for each value, and their number.
func (r *reach) with(key string, values []string) (lists [][]nodeLabels, number int) {
	by, isKnown := r.labelled[key]
	if !isKnown {
		by = map[string][]nodeLabels{}
		for _, node := range r.nodes {
			if value, has := node[key]; has {
				by[value] = append(by[value], node)
			}
		}
		r.labelled[key] = by
	}
	for _, value := range values {
		lists, number = append(lists, by[value]), number+len(by[value])
	}
	return lists, number
}
