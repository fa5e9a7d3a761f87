package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// joined makes both nodes new ones, with the taint of the driver, which is not registered there yet. The scheduler
// finds no node for pod web.
func joined() *Cluster {
	c := healthy()
	c.Pods[0].Spec.Containers = append(c.Pods[0].Spec.Containers, corev1.Container{Args: []string{"--startup-taint"}})
	for i := range c.Nodes {
		c.Nodes[i].UID = "new"
		c.Nodes[i].Spec.Taints = []corev1.Taint{{Key: driver + startup, Effect: corev1.TaintEffectNoSchedule}}
		c.CSINodes[i].Spec.Drivers = nil
	}
	c.Attachments = nil
	c.web().Spec.NodeName = ""
	c.web().Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes"}}}
	return c
}

// TestStarting reports what a pod waits for if its nodes have just joined.
func TestStarting(t *testing.T) {
	register := func(c *Cluster, uid string) {
		c.CSINodes = healthy().CSINodes
		for i := range c.CSINodes {
			c.CSINodes[i].OwnerReferences = []metav1.OwnerReference{{UID: "older"}, {UID: "x"}}
			c.CSINodes[i].OwnerReferences[1].UID = types.UID(uid)
		}
	}
	const taint, away = driver + startup, "2 of 2 nodes, such as node-1, do not take the pod yet"
	for name, s := range map[string]struct {
		changes func(c *Cluster)
		want    []string // about the pod, the worst first
	}{
		"nodes wait": {func(*Cluster) {}, []string{away, "waits until " + driver + " is registered"}},
		"the driver does not start": {func(c *Cluster) { c.crash(1) },
			[]string{"was restarted 7 times: nothing is mounted", away, "waits until"}},
		"an earlier Node's registration": {func(c *Cluster) { register(c, "old") }, []string{away, "waits until"}},
		"this Node's registration of no driver": {func(c *Cluster) { register(c, "new"); c.CSINodes[0].Spec.Drivers = nil },
			[]string{away, "waits until"}},
		"the manager is next": {func(c *Cluster) { register(c, "new") },
			[]string{away, "takes the taint " + taint + " away"}},
		"the manager does not start": {func(c *Cluster) { register(c, "new"); c.crash(0) },
			[]string{"was restarted 7 times: nothing is created", away, "takes the taint"}},
		"nobody removes it": {func(c *Cluster) { c.Pods[0].Spec.Containers = c.Pods[0].Spec.Containers[:1] },
			[]string{"does not run with --startup-taint", away}},
		"one node waits": {func(c *Cluster) { c.Nodes[0].Spec.Taints = nil },
			[]string{"finds no node", "1 of 2 nodes, such as node-2,", "waits until"}},
		"the pod tolerates it": {func(c *Cluster) {
			c.web().Spec.Tolerations = []corev1.Toleration{{Key: taint, Operator: corev1.TolerationOpExists}}
		}, []string{"finds no node"}},
		"only preferred": {func(c *Cluster) {
			for i := range c.Nodes {
				c.Nodes[i].Spec.Taints[0].Effect = corev1.TaintEffectPreferNoSchedule
			}
		}, []string{"finds no node"}},
		"another's taint": {func(c *Cluster) {
			for i := range c.Nodes {
				c.Nodes[i].Spec.Taints[0].Key = "ebs.csi.aws.com/agent-not-ready"
			}
		}, []string{"finds no node"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := joined()
			s.changes(c)
			var found []Finding
			for _, f := range Sort(c.Pod("shop", "web")) {
				if f.Verdict != Fine {
					found = append(found, f)
				}
			}
			if len(found) != len(s.want) {
				t.Fatalf("got %+v, want %q", found, s.want)
			}
			for i, want := range s.want {
				if !strings.Contains(found[i].Says, want) {
					t.Errorf("got %q, want %q", found[i].Says, want)
				}
				if strings.Contains(found[i].Says, "nodes, such as") && found[i].Proof != "0/2 nodes" {
					t.Errorf("the proof is %q", found[i].Proof)
				}
			}
		})
	}
}

// TestStartingNode reports the taint also for the node, and for the whole cluster.
func TestStartingNode(t *testing.T) {
	for about, found := range map[string][]Finding{"the node": joined().Node("node-2"), "all": joined().All()} {
		told := false
		for _, f := range found {
			told = told || f.Object == "node node-2" && strings.Contains(f.Says, "waits until "+driver+" is registered")
		}
		if !told {
			t.Errorf("about %s: got %+v", about, found)
		}
	}
}

// TestOtherTaints ignores taints that are not of Stowage's drivers.
func TestOtherTaints(t *testing.T) {
	c := healthy()
	c.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "ebs.csi.aws.com/agent-not-ready", Effect: corev1.TaintEffectNoSchedule}}
	if ill := c.All(); len(ill) != 0 {
		t.Errorf("got %+v", ill)
	}
}
