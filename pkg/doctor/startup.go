package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startup is the key, after the driver's name, of the taint by which a new node waits for a Stowage driver.
const startup = "/agent-not-ready"

// joining examines a new node with such a taint, which takes no pod until stowage-manager removes the taint.
func (c *Cluster) joining(n *corev1.Node) (found []Finding) {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		driver := strings.TrimSuffix(t.Key, startup)
		if !isStartup(t) {
			continue
		}
		f := Finding{Object: "node " + n.Name, Verdict: Waiting, Says: fmt.Sprintf(
			"no pod starts on the node that does not tolerate %s: it waits until %s is registered there", t.Key, driver)}
		var sick []Finding
		switch {
		case !slices.ContainsFunc(c.servants(driver, controllers, ""),
			func(p *corev1.Pod) bool { return runs(p, func(arg string) bool { return arg == "--startup-taint" }) }):
			f.Verdict, f.Says = Broken, fmt.Sprintf("the node has the taint %s, and nobody removes it: stowage-manager of %s "+
				"does not run with --startup-taint", t.Key, driver)
			f.Advice = fmt.Sprintf("turn it on, or once the driver is registered: kubectl taint nodes %s %s-", n.Name, t.Key)
		case c.hasRegistered(n, driver):
			f.Says = fmt.Sprintf("%s is registered on the node: stowage-manager takes the taint %s away", driver, t.Key)
			f.Advice = "nothing, unless it stays: then look at the log of its container manager"
			sick = c.controller(driver)
		default:
			sick = c.plugin(driver, n.Name)
		}
		found = append(append(found, f), sick...)
	}
	return found
}

// hasRegistered reports whether a driver is registered on this very node, and not on an earlier one of the same name.
func (c *Cluster) hasRegistered(n *corev1.Node, driver string) bool {
	return c.registration(n.Name, driver) != nil && slices.ContainsFunc(c.csiNode(n.Name).OwnerReferences,
		func(owner metav1.OwnerReference) bool { return owner.UID == n.UID })
}

// isStartup reports whether a taint belongs to a Stowage driver, and keeps pods away.
func isStartup(t *corev1.Taint) bool {
	return strings.HasSuffix(t.Key, suffix+startup) && t.Effect != corev1.TaintEffectPreferNoSchedule
}

// keepsAway reports, for a pod without a node, how many nodes do not take it because of such a taint, and examines one
// of them. Unless all nodes are tainted, the pod may have no node for another reason.
func (c *Cluster) keepsAway(p *corev1.Pod) (found []Finding, all bool) {
	var away []*corev1.Node
	for i := range c.Nodes {
		if slices.ContainsFunc(c.Nodes[i].Spec.Taints, func(t corev1.Taint) bool {
			return isStartup(&t) && !slices.ContainsFunc(p.Spec.Tolerations,
				func(by corev1.Toleration) bool { return by.ToleratesTaint(logr.Discard(), &t, true) })
		}) {
			away = append(away, &c.Nodes[i])
		}
	}
	if len(away) == 0 {
		return nil, false
	}
	return append([]Finding{{Object: podName(p), Verdict: Waiting, Says: fmt.Sprintf("%d of %d nodes, such as %s, do not "+
		"take the pod yet: each waits for a driver to register there", len(away), len(c.Nodes), away[0].Name)}},
		c.joining(away[0])...), len(away) == len(c.Nodes)
}
