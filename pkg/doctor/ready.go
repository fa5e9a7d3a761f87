package doctor

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// readiness returns a node's condition Ready, or nil if its kubelet has never reported.
func readiness(n *corev1.Node) *corev1.NodeCondition {
	return find(n.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
}

// isReady reports whether a node's kubelet reports that the node is ready.
func isReady(n *corev1.Node) bool {
	c := readiness(n)
	return c != nil && c.Status == corev1.ConditionTrue
}

// isUnready reports whether a node's kubelet reports that the node is not ready. Such a kubelet runs. Kubernetes sets
// the condition of a kubelet that is silent to Unknown.
func isUnready(n *corev1.Node) bool {
	c := readiness(n)
	return c != nil && c.Status == corev1.ConditionFalse
}

// unready completes a finding about a node that reports that it is not ready. It adds the kubelet's reason. It does not
// advise to put the node out of service, because the node's pods may run.
func unready(f Finding, n *corev1.Node) Finding {
	c := readiness(n)
	f.Verdict, f.Proof = Broken, fmt.Sprintf("condition Ready of node %s: %s: %s", n.Name, c.Reason, c.Message)
	f.Advice = "remove the cause that the kubelet names, often in the container runtime or the network plugin: " +
		"kubectl describe node " + n.Name
	return f
}
