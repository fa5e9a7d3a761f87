package ebs

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestAutoscalersCanSimulate asks, as an autoscaler does, whether a node that does not exist yet could use a volume.
// The autoscaler knows the labels that the cloud's nodes always have, and none that a driver adds when it registers.
// The former are Karpenter's "Well-Known Labels" and the generic labels of the Cluster Autoscaler's AWS provider.
func TestAutoscalersCanSimulate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := region.New(t, region.Quick(), 0)
		controller := process(t, w)
		v, err := controller.Create(t.Context(), region.Spec("v"))
		if err != nil {
			t.Fatal(err)
		}
		term := corev1.NodeSelectorTerm{}
		for key, value := range v.Topology[0] { // As in a PersistentVolume's node affinity by csi-provisioner.
			term.MatchExpressions = append(term.MatchExpressions,
				corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		}
		affinity, err := nodeaffinity.NewNodeSelector(
			&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}})
		if err != nil {
			t.Fatal(err)
		}
		node := &corev1.Node{}
		for _, zone := range []string{"region-1a", "region-1b", "region-1c"} {
			node.Labels = map[string]string{
				corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "region-1", corev1.LabelInstanceTypeStable: "m7i.large",
				corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelHostname: "a-node-to-be",
			}
			if can, want := affinity.Match(node), zone == v.Topology[0][corev1.LabelTopologyZone]; can != want {
				t.Errorf("a new node in %s can use a volume in %v: %t, want %t", zone, v.Topology, can, want)
			}
		}
	})
}
