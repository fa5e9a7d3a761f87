package doctor

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// mounting finds why a pod that has its node does not have its volumes there.
func (c *Cluster) mounting(p *corev1.Pod) (found []Finding) {
	n := c.node(p.Spec.NodeName)
	switch {
	case n == nil:
		return []Finding{{Object: podName(p), Verdict: Broken,
			Says:   fmt.Sprintf("node %s is no node of the cluster any more, and the pod cannot start there", p.Spec.NodeName),
			Advice: "delete the pod"}}
	case isUnready(n):
		return []Finding{unready(Finding{Object: podName(p),
			Says: fmt.Sprintf("node %s reports that it is not ready, and the pod may not start there", n.Name)}, n)}
	case !isReady(n):
		return []Finding{{Object: podName(p), Verdict: Broken,
			Says:   fmt.Sprintf("node %s does not answer, and the pod cannot start there", p.Spec.NodeName),
			Advice: "bring the node back, or delete the pod"}}
	}
	for _, name := range claimsOf(p) {
		claim := c.claim(p.Namespace, name)
		if claim == nil {
			continue
		}
		if v := c.volume(claim.Spec.VolumeName); v != nil && v.Spec.CSI != nil {
			found = append(found, c.mountingOne(p, v)...)
		}
	}
	if len(found) > 0 {
		return found
	}
	if e := c.event("Pod", p.Namespace, p.Name, "FailedMount", "FailedMapVolume", "FailedAttachVolume"); e != nil {
		return []Finding{{Object: podName(p), Verdict: Broken,
			Says:  fmt.Sprintf("the kubelet of node %s could not mount a volume and tries again", p.Spec.NodeName),
			Proof: proof(e)}}
	}
	return []Finding{{Object: podName(p), Verdict: Waiting,
		Says: fmt.Sprintf("the kubelet of node %s has the pod, and reports no failure of its volumes", p.Spec.NodeName)}}
}

// mountingOne examines one volume, which is attached first, and then mounted by the driver's pod on the node.
func (c *Cluster) mountingOne(p *corev1.Pod, v *corev1.PersistentVolume) []Finding {
	driver := v.Spec.CSI.Driver
	if found := c.attach(p, v); len(found) > 0 {
		return found
	}
	if c.registration(p.Spec.NodeName, driver) == nil {
		return append(c.plugin(driver, p.Spec.NodeName), Finding{Object: podName(p), Verdict: Broken,
			Says: fmt.Sprintf("the driver %s is not registered on node %s (CSINode), so that its kubelet cannot mount %s",
				driver, p.Spec.NodeName, v.Name),
			Advice: "start the driver's node pod there; or keep pods away from nodes without it"})
	}
	return c.plugin(driver, p.Spec.NodeName)
}
