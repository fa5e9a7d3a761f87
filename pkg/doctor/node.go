package doctor

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Node examines a node: its attached volumes, the drivers that serve it, and the pods that wait for volumes on it.
func (c *Cluster) Node(name string) (found []Finding) {
	object := "node " + name
	n := c.node(name)
	if n == nil {
		found = append(found, Finding{Object: object, Verdict: Broken, Says: "there is no such node"})
	} else {
		found = append(append(found, c.nodeState(n)), c.joining(n)...)
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

func (c *Cluster) nodeState(n *corev1.Node) Finding {
	f := Finding{Object: "node " + n.Name, Verdict: Fine,
		Says: fmt.Sprintf("the node is ready, and its kubelet reports %d volumes in use", len(n.Status.VolumesInUse))}
	switch {
	case isUnready(n):
		f.Says = "the node's kubelet reports that it is not ready: its pods may still write, and no pod starts there"
		f = unready(f, n)
	case !isReady(n):
		f.Verdict, f.Says = Broken, "the node's kubelet does not report: whether its pods still write is unknown"
		f.Advice = "bring it back, or once the machine is certainly off: kubectl taint nodes " + n.Name +
			" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute --overwrite"
	}
	if taint := outOfServiceTaint(n); taint != nil {
		return c.outOfService(n, taint, f)
	}
	return f
}

func outOfServiceTaint(n *corev1.Node) *corev1.Taint {
	return find(n.Spec.Taints, func(t *corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// outOfService examines a node that was put out of service by a person or by a driver's failover, whose taint has the
// driver's name. Its volumes may have been detached while they were mounted. So the taint must stay as long as a
// kubelet that works again reports one in use.
func (c *Cluster) outOfService(n *corev1.Node, taint *corev1.Taint, f Finding) Finding {
	remove := fmt.Sprintf("kubectl taint nodes %s %s-", n.Name, taint.Key)
	held, inUse := c.driver(taint.Value) != nil, len(n.Status.VolumesInUse)
	mounted := fmt.Sprintf("its kubelet reports %d volumes in use, which may have been detached while they were mounted",
		inUse)
	switch {
	case !isReady(n):
		f.Says += "; it has the taint " + taint.Key + ", so that its pods are deleted and its volumes detached"
		f.Advice = "bring the machine back only after it has restarted, then remove the taint"
		if held {
			f.Advice = "bring the machine back: failover takes the taint away once the node works and reports no volume in use"
		}
	case held && inUse > 0:
		f.Verdict, f.Says = Waiting, "the node is ready, and failover keeps it out of service: "+mounted
		f.Advice = "leave the taint, and end the pods there that tolerate it"
	case held:
		f.Verdict, f.Says = Waiting, "the node is ready and reports no volume in use: failover takes the taint away"
		f.Advice = "nothing, unless stowage-manager of " + taint.Value + " does not run with --failover: " + remove
	case inUse > 0:
		f.Verdict, f.Says = Broken, "the node is ready and still has the taint "+taint.Key+": "+mounted
		f.Advice = "end the pods there that tolerate it, and once it reports none: " + remove
	default:
		f.Verdict, f.Says = Broken, "the node is ready and still has the taint "+taint.Key+": no pod starts there"
		f.Advice = remove
	}
	return f
}

// served examines one driver on a node.
func (c *Cluster) served(node, driver string, attached int32) []Finding {
	r := c.registration(node, driver)
	if r == nil {
		return nil // Many drivers serve only some nodes. podState finds a pod that misses a driver.
	}
	found := c.plugin(driver, node)
	if r.Allocatable != nil && r.Allocatable.Count != nil && attached >= *r.Allocatable.Count {
		found = append(found, Finding{Object: "node " + node, Verdict: Broken,
			Says: fmt.Sprintf("%d volumes of %s are attached, and the node takes %d: no further pod with such a volume starts "+
				"there", attached, driver, *r.Allocatable.Count),
			Advice: "use more or larger nodes"})
	}
	return found
}
