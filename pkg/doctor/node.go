package doctor

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Node examines a node: what is attached to it, which drivers serve it, and which pods wait for volumes on it.
func (c *Cluster) Node(name string) (found []Finding) {
	object := "node " + name
	n := c.node(name)
	if n == nil {
		found = append(found, Finding{Object: object, Verdict: Broken, Says: "there is no such node"})
	} else {
		found = append(found, nodeState(n))
	}
	count := map[string]int32{}
	for i := range c.Attachments {
		if a := &c.Attachments[i]; a.Spec.NodeName == name {
			count[a.Spec.Attacher]++
			found = append(found, c.attachment(a)...)
		}
	}
	for i := range c.Drivers {
		if driver := c.Drivers[i].Name; n != nil {
			found = append(found, c.served(name, driver, count[driver])...)
		}
	}
	for i := range c.Pods {
		if p := &c.Pods[i]; p.Spec.NodeName == name && len(claimsOf(p)) > 0 && (!started(p) || p.DeletionTimestamp != nil) {
			found = append(found, c.podState(p)...)
		}
	}
	return found
}

func nodeState(n *corev1.Node) Finding {
	f := Finding{Object: "node " + n.Name, Verdict: Fine, Says: fmt.Sprintf("the node is ready, and its kubelet reports %d volumes in use", len(n.Status.VolumesInUse))}
	if !isReady(n) {
		f.Verdict, f.Says = Broken, "the node's kubelet does not report: whether its pods still write is unknown"
		f.Advice = "bring it back, or once the machine is certainly off: kubectl taint nodes " + n.Name + " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	}
	taint := find(n.Spec.Taints, func(t *corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	switch {
	case taint != nil && isReady(n):
		f.Verdict, f.Says = Broken, "the node is ready and still has the taint "+taint.Key+": no pod starts there"
		f.Advice = fmt.Sprintf("kubectl taint nodes %s %s-", n.Name, taint.Key)
	case taint != nil:
		f.Says, f.Advice = f.Says+"; it has the taint "+taint.Key+", so that its pods are deleted and its volumes detached", "bring the machine back only after it has restarted, then remove the taint"
	}
	return f
}

// served is about one driver on a node.
func (c *Cluster) served(node, driver string, attached int32) []Finding {
	r := c.registration(node, driver)
	if r == nil {
		return nil // Many drivers serve some nodes only; a pod that misses one is found by podState.
	}
	found := c.plugin(driver, node)
	if r.Allocatable != nil && r.Allocatable.Count != nil && attached >= *r.Allocatable.Count {
		found = append(found, Finding{Object: "node " + node, Verdict: Broken, Says: fmt.Sprintf("%d volumes of %s are attached, and the node takes %d: no further pod with such a volume starts there", attached, driver, *r.Allocatable.Count),
			Advice: "use more or larger nodes"})
	}
	return found
}
