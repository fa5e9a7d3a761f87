package doctor

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Pod examines the volumes of a pod.
func (c *Cluster) Pod(namespace, name string) []Finding {
	p := find(c.Pods, func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Name == name })
	if p == nil {
		return []Finding{{Object: "pod " + namespace + "/" + name, Verdict: Broken, Says: "there is no such pod",
			Advice: "look at its controller: kubectl get events --namespace " + namespace}}
	}
	return c.podState(p)
}

func (c *Cluster) podState(p *corev1.Pod) (found []Finding) {
	claims := claimsOf(p)
	if len(claims) == 0 {
		return []Finding{{Object: podName(p), Verdict: Fine, Says: "the pod uses no claim"}}
	}
	for _, claim := range claims {
		found = append(found, c.Claim(p.Namespace, claim)...)
	}
	switch {
	case p.DeletionTimestamp != nil:
		return append(found, c.podGoes(p)...)
	case p.Spec.NodeName == "":
		found = append(found, c.unscheduled(p)...)
	case !started(p):
		found = append(found, c.mounting(p)...)
	}
	return found
}

// unscheduled reports why the scheduler has found no node for a pod, or nil if it has found one or did not look.
func (c *Cluster) unscheduled(p *corev1.Pod) []Finding {
	condition := find(p.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if p.Spec.NodeName != "" || condition == nil || condition.Status != corev1.ConditionFalse {
		return nil
	}
	f := Finding{Object: podName(p), Verdict: Broken, Says: "the scheduler finds no node for the pod",
		Proof: condition.Message,
		Advice: "compare the pod's constraints, the volume's node affinity and the free capacity (kubectl get " +
			"csistoragecapacities -A) with the nodes"}
	starting, all := c.keepsAway(p)
	if starting != nil {
		starting[0].Proof = f.Proof
	}
	if all {
		return starting
	}
	return append([]Finding{f}, starting...)
}

// started reports whether the kubelet has mounted all volumes of a pod: it starts no container before.
func started(p *corev1.Pod) bool {
	for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if s.ContainerID != "" {
			return true
		}
	}
	return p.Status.Phase != corev1.PodPending
}

// podGoes examines a pod that is being deleted.
func (c *Cluster) podGoes(p *corev1.Pod) []Finding {
	n := c.node(p.Spec.NodeName)
	switch {
	case p.Spec.NodeName == "":
		return []Finding{{Object: podName(p), Verdict: Waiting,
			Says: "the pod is being deleted, has no node, and has the finalizers " + strings.Join(p.Finalizers, ", ")}}
	case n == nil:
		return []Finding{{Object: podName(p), Verdict: Waiting,
			Says: fmt.Sprintf("the pod is being deleted, and node %s is no node of the cluster any more: Kubernetes deletes "+
				"the pod after a minute or two, unless it has finalizers", p.Spec.NodeName)}}
	case isReady(n): // See below.
	case outOfServiceTaint(n) != nil:
		return []Finding{{Object: podName(p), Verdict: Waiting,
			Says: fmt.Sprintf("the pod is being deleted, and node %s is out of service: Kubernetes deletes it without the "+
				"kubelet, unless it tolerates the taint", n.Name)}}
	case isUnready(n):
		f := unready(Finding{Object: podName(p),
			Says: fmt.Sprintf("the pod is being deleted, and node %s reports that it is not ready: its kubelet may be unable "+
				"to end the pod", n.Name)}, n)
		f.Advice += ". Never force the deletion of a pod that may still run"
		return []Finding{f}
	default:
		return []Finding{{Object: podName(p), Verdict: Broken,
			Says: fmt.Sprintf("the pod is being deleted, and node %s does not answer: nobody knows whether it still writes",
				n.Name),
			Advice: "once the machine is certainly off: kubectl taint nodes " + n.Name +
				" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. Never force the deletion of a pod that may still run"}}
	}
	f := Finding{Object: podName(p), Verdict: Waiting,
		Says: "the pod is being deleted; the kubelet of node " + p.Spec.NodeName + " ends it and unmounts its volumes"}
	if e := c.event("Pod", p.Namespace, p.Name, "FailedUnMount", "FailedKillPod"); e != nil {
		f.Verdict, f.Proof = Broken, proof(e)
	}
	return []Finding{f}
}
