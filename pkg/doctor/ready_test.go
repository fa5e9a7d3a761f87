package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// unreadyNode makes node-1 a node whose kubelet reports that its container runtime does not run.
func (c *Cluster) unreadyNode() {
	c.Nodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		Reason: "KubeletNotReady", Message: "container runtime is down"}
}

// TestUnready has a kubelet that reports that its node is not ready. It is not silent, its reason is known, and its
// pods may run: the node must not be put out of service.
func TestUnready(t *testing.T) {
	of := func(c *Cluster) []Finding { return c.Pod("shop", "web") }
	for name, s := range map[string]struct {
		changes func(c *Cluster)
		about   func(c *Cluster) []Finding
		want    string
	}{
		"the node": {func(*Cluster) {}, func(c *Cluster) []Finding { return c.Node("node-1") },
			"the node's kubelet reports that it is not ready"},
		"an attachment": {func(*Cluster) {}, func(c *Cluster) []Finding { return c.attachment(&c.Attachments[0]) },
			"node node-1 reports that it is not ready, and may still write"},
		"a pod that starts": {(*Cluster).starting, of, "the pod may not start there"},
		"a pod that is deleted": {func(c *Cluster) { c.web().DeletionTimestamp = ptr.To(metav1.Now()) }, of,
			"its kubelet may be unable to end the pod"},
	} {
		c := healthy()
		c.unreadyNode()
		s.changes(c)
		isTold := false
		for _, f := range s.about(c) {
			if strings.Contains(f.Says, "does not answer") || strings.Contains(f.Says, "does not report") ||
				strings.Contains(f.Advice, "kubectl taint") {
				t.Errorf("%s: got %+v, want that of a kubelet that reports", name, f)
			}
			isTold = isTold || f.Verdict == Broken && strings.Contains(f.Says, s.want) &&
				strings.Contains(f.Proof, "container runtime is down")
		}
		if !isTold {
			t.Errorf("%s: got %+v, want %q with the kubelet's reason", name, s.about(c), s.want)
		}
	}
}

// TestUnreadyOutOfService has such a node that was put out of service already.
func TestUnreadyOutOfService(t *testing.T) {
	c := healthy()
	c.unreadyNode()
	c.Nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	f := c.Node("node-1")[0]
	for _, want := range []string{"reports that it is not ready", "its pods are deleted and its volumes detached"} {
		if f.Verdict != Broken || !strings.Contains(f.Says, want) {
			t.Errorf("got %+v, want that it is broken and says %q", f, want)
		}
	}
}

// TestPodOfALostNode has a pod of a node whose object is gone. Nobody can bring back a node that is deleted.
func TestPodOfALostNode(t *testing.T) {
	c := healthy()
	c.starting()
	c.Nodes = c.Nodes[1:]
	isTold := false
	for _, f := range c.Pod("shop", "web") {
		isTold = isTold || strings.Contains(f.Says, "node node-1 is no node of the cluster any more, and the pod cannot")
	}
	if !isTold {
		t.Errorf("got %+v, want that node node-1 is gone", c.Pod("shop", "web"))
	}
}

// TestDeletedPodWithoutANode has pods that no kubelet can end.
func TestDeletedPodWithoutANode(t *testing.T) {
	for want, change := range map[string]func(c *Cluster){
		"node node-1 is no node of the cluster any more": func(c *Cluster) { c.Nodes = c.Nodes[1:] },
		"has no node, and has the finalizers example.org/keeps": func(c *Cluster) {
			c.web().Spec.NodeName, c.web().Finalizers = "", []string{"example.org/keeps"}
		},
	} {
		c := healthy()
		c.web().DeletionTimestamp = ptr.To(metav1.Now())
		change(c)
		found := c.podGoes(c.web())
		if len(found) != 1 || !strings.Contains(found[0].Says, want) || strings.Contains(found[0].Says, "the kubelet of") {
			t.Errorf("got %+v, want %q and no kubelet", found, want)
		}
	}
}
