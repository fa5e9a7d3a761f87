package binder

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storage "k8s.io/component-helpers/storage/volume"
)

// affine sets the node affinity of a volume.
func affine(terms ...corev1.NodeSelectorTerm) func(*pv) {
	return func(v *pv) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
}

// labelled returns a term of expressions.
func labelled(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: all}
}

func require(key string, by corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: by, Values: values}
}

// TestFewComparisons decides for ten thousand volumes, one for each of as many nodes, half of which are gone. It
// compares no volume with more than one node. It does the same for volumes of a few zones.
func TestFewComparisons(t *testing.T) {
	const number = 10_000
	var nodes []nodeLabels
	for i := range number / 2 {
		nodes = append(nodes, nodeLabels{"host": fmt.Sprint(i), "zone": fmt.Sprint(i % 3)})
	}
	for name, key := range map[string]struct {
		of     func(i int) []corev1.NodeSelectorRequirement
		isHere func(i int) bool
	}{
		"node": {
			func(i int) []corev1.NodeSelectorRequirement {
				return []corev1.NodeSelectorRequirement{require("host", corev1.NodeSelectorOpIn, fmt.Sprint(i))}
			},
			func(i int) bool { return i < number/2 },
		},
		"zone and node": {
			func(i int) []corev1.NodeSelectorRequirement {
				return []corev1.NodeSelectorRequirement{require("zone", corev1.NodeSelectorOpIn, fmt.Sprint(i%3)),
					require("host", corev1.NodeSelectorOpIn, fmt.Sprint(i))}
			},
			func(i int) bool { return i < number/2 },
		},
		"zone": {
			func(i int) []corev1.NodeSelectorRequirement {
				return []corev1.NodeSelectorRequirement{require("zone", corev1.NodeSelectorOpIn, fmt.Sprint(i%6))}
			},
			func(i int) bool { return i%6 < 3 },
		},
	} {
		r, compared := newReach(nodes), 0
		r.canUse = func(one *corev1.PersistentVolume, node nodeLabels) bool {
			compared++
			return canUse(one, node)
		}
		for i := range number {
			v := newVolume(fmt.Sprint(i), affine(labelled(key.of(i)...)))
			if got := r.isReachable(v); got != key.isHere(i) {
				t.Fatalf("by %s: volume %d can be reached: %t, want %t", name, i, got, key.isHere(i))
			}
			if compared > number {
				t.Fatalf("by %s: after %d volumes there were %d comparisons, want at most %d for %d", name, i+1, compared,
					number, number)
			}
		}
	}
}

// TestReach compares isReachable with a comparison of the volume with each node, for terms of all kinds.
func TestReach(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0)) // A seed repeats a run.
	value := func() string { return fmt.Sprint(random.IntN(3)) }
	key := func() string { return []string{"zone", "host", "disk"}[random.IntN(3)] }
	expression := func() corev1.NodeSelectorRequirement {
		switch random.IntN(6) {
		case 0:
			return require(key(), corev1.NodeSelectorOpNotIn, value())
		case 1:
			return require(key(), corev1.NodeSelectorOpExists)
		case 2:
			return require(key(), corev1.NodeSelectorOpDoesNotExist)
		case 3:
			return require(key(), corev1.NodeSelectorOpIn, value(), value())
		}
		return require(key(), corev1.NodeSelectorOpIn, value())
	}
	term := func() (one corev1.NodeSelectorTerm) {
		for range random.IntN(4) {
			one.MatchExpressions = append(one.MatchExpressions, expression())
		}
		if random.IntN(6) == 0 {
			by := []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}[random.IntN(2)]
			one.MatchFields = append(one.MatchFields, require("metadata.name", by, "n"))
		}
		return one
	}
	number := map[bool]int{}
	for range 10_000 {
		var nodes []nodeLabels
		for range random.IntN(4) {
			node := nodeLabels{}
			for range random.IntN(4) {
				node[key()] = value()
			}
			nodes = append(nodes, node)
		}
		var terms []corev1.NodeSelectorTerm
		for range 1 + random.IntN(3) {
			terms = append(terms, term())
		}
		v := newVolume("v", affine(terms...))
		want := slices.ContainsFunc(nodes,
			func(node nodeLabels) bool { return storage.CheckNodeAffinity(v, node) == nil })
		if got := newReach(nodes).isReachable(v); got != want {
			t.Fatalf("a volume for %+v can be reached from nodes %v: %t, want %t", terms, nodes, got, want)
		}
		number[want]++
	}
	if number[true] < 1000 || number[false] < 1000 {
		t.Errorf("%d volumes can be reached and %d cannot, want 1000 of each to compare", number[true], number[false])
	}
}

// TestReachWithoutAffinity has a volume that can be used everywhere, also while no node is known.
func TestReachWithoutAffinity(t *testing.T) {
	for name, affinity := range map[string]*corev1.VolumeNodeAffinity{"no affinity": nil, "an empty one": {}} {
		v := newVolume("v", func(v *pv) { v.Spec.NodeAffinity = affinity })
		if !newReach(nil).isReachable(v) {
			t.Errorf("%s: the volume cannot be reached, want that it can", name)
		}
	}
}
