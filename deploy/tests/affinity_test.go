package tests

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNoVirtualNodes checks that a set of pods for all nodes has none for a node that runs no pod which mounts. Such a
// pod would be pending for ever. The names are those with which the nodes are labelled.
func TestNoVirtualNodes(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		for id, pod := range pods(t, objects) {
			if !strings.HasPrefix(id, "DaemonSet/") {
				continue
			}
			for _, row := range []struct {
				label, value string
				runs         bool
			}{
				{"type", "virtual-kubelet", false},
				{"eks.amazonaws.com/compute-type", "fargate", false},
				{"eks.amazonaws.com/compute-type", "hybrid", !strings.Contains(id, "-ebs-")},
				{"eks.amazonaws.com/compute-type", "ec2", true},
				{"kubernetes.io/os", "linux", true},
			} {
				if got := runsWith(t, pod, row.label, row.value); got != row.runs {
					t.Errorf("%s runs on nodes with %s=%s: %t, want %t", id, row.label, row.value, got, row.runs)
				}
			}
		}
	})
}

// runsWith reports whether the affinity of a pod allows a node that has only one label.
func runsWith(t *testing.T, pod corev1.PodTemplateSpec, label, value string) bool {
	t.Helper()
	if pod.Spec.Affinity == nil {
		return true
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchFields) > 0 {
		t.Fatalf("there are %d terms, of which each alone would allow a node: %v", len(terms), terms)
	}
	for _, e := range terms[0].MatchExpressions {
		if e.Operator != corev1.NodeSelectorOpNotIn {
			t.Fatalf("a node without the label %s is not allowed: %v", e.Key, e)
		}
		if e.Key == label && slices.Contains(e.Values, value) {
			return false
		}
	}
	return true
}

// TestAffinityIsAValue checks that a value replaces the rule.
func TestAffinityIsAValue(t *testing.T) {
	own := map[string]any{"affinity": map[string]any{"nodeAffinity": map[string]any{
		"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{
			map[string]any{"matchExpressions": []any{
				map[string]any{"key": "storage", "operator": "NotIn", "values": []any{"no"}}}}}}}}}
	cluster := map[string]any{"mode": "cluster", "affinity": own["affinity"]}
	for _, values := range []map[string]any{{"backend": "ebs", "node": own}, {"local": own}, {"local": cluster}} {
		for id, pod := range pods(t, charted(t, values, false)) {
			if onNodes := !strings.HasPrefix(id, "Deployment/"); onNodes && (runsWith(t, pod, "storage", "no") ||
				!runsWith(t, pod, "type", "virtual-kubelet")) {
				t.Errorf("%s has the affinity %v, want that of the value", id, pod.Spec.Affinity)
			}
		}
	}
	for _, value := range []any{map[string]any{"nodeAfinity": map[string]any{}}, "fargate"} {
		values := map[string]any{"backend": "nfs", "node": map[string]any{"affinity": value}}
		if _, err := rendered(values, false); err == nil {
			t.Errorf("the affinity %v is accepted", value)
		}
	}
}
