package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// attachment finds what is wrong with a VolumeAttachment: its node is gone or silent, or one of its steps fails.
func (c *Cluster) attachment(a *storagev1.VolumeAttachment) (found []Finding) {
	object := "VolumeAttachment " + a.Name
	n := c.node(a.Spec.NodeName)
	switch {
	case n == nil:
		found = append(found, Finding{Object: object, Verdict: Waiting,
			Says: fmt.Sprintf("it attaches a volume to node %s, which is no node of the cluster any more: Kubernetes has it "+
				"detached after six minutes, unless the driver finds that its machine may still write", a.Spec.NodeName)})
	case !isReady(n) && outOfServiceTaint(n) != nil:
		found = append(found, Finding{Object: object, Verdict: Waiting,
			Says: fmt.Sprintf("node %s is out of service: Kubernetes has its volumes detached once their pods are deleted",
				n.Name)})
	case isUnready(n):
		found = append(found, unready(Finding{Object: object,
			Says: fmt.Sprintf("node %s reports that it is not ready, and may still write: Kubernetes has its volumes detached "+
				"six minutes after its pods are deleted, unless the driver finds that the machine may still write", n.Name)}, n))
	case !isReady(n):
		found = append(found, Finding{Object: object, Verdict: Broken,
			Says: fmt.Sprintf("node %s does not answer, and may still write: Kubernetes has its volumes detached six "+
				"minutes after its pods are deleted, unless the driver finds that the machine may still write", n.Name),
			Advice: "once the machine is certainly off: kubectl taint nodes " + n.Name +
				" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute --overwrite, and remove the taint when it is back"})
	}
	if e := a.Status.DetachError; a.DeletionTimestamp != nil && e != nil {
		return append(found, Finding{Object: object, Verdict: Broken,
			Says:  fmt.Sprintf("the volume could not be detached from node %s; csi-attacher asks again", a.Spec.NodeName),
			Proof: e.Message})
	}
	if a.DeletionTimestamp != nil {
		found = append(found, Finding{Object: object, Verdict: Waiting,
			Says: fmt.Sprintf("the volume is being detached from node %s", a.Spec.NodeName)})
		return append(found, c.controller(a.Spec.Attacher)...)
	}
	if e := a.Status.AttachError; !a.Status.Attached && e != nil {
		found = append(found, Finding{Object: object, Verdict: Broken,
			Says:  fmt.Sprintf("the volume could not be attached to node %s; csi-attacher asks again", a.Spec.NodeName),
			Proof: e.Message})
	}
	return found
}

// attach finds why a volume is not attached to a pod's node. It finds nothing if the volume is attached, or need not
// be.
func (c *Cluster) attach(p *corev1.Pod, v *corev1.PersistentVolume) []Finding {
	d := c.driver(v.Spec.CSI.Driver)
	if d == nil || d.Spec.AttachRequired != nil && !*d.Spec.AttachRequired {
		return nil
	}
	attachments := c.attachments(v.Name)
	here := slices.IndexFunc(attachments,
		func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == p.Spec.NodeName })
	if here >= 0 {
		return c.attaching(p, attachments[here])
	}
	if len(attachments) > 0 && single(v) {
		return []Finding{c.elsewhere(p, v, attachments[0])}
	}
	return []Finding{{Object: podName(p), Verdict: Waiting,
		Says: fmt.Sprintf("Kubernetes' attach controller has yet to write a VolumeAttachment of %s to node %s", v.Name,
			p.Spec.NodeName)}}
}

func (c *Cluster) attaching(p *corev1.Pod, a *storagev1.VolumeAttachment) []Finding {
	if a.Status.Attached {
		return nil
	}
	if sick := c.controller(a.Spec.Attacher); sick != nil || a.Status.AttachError != nil {
		return append(sick, Finding{Object: podName(p), Verdict: Waiting,
			Says: "the pod waits until its volume is attached to node " + p.Spec.NodeName})
	}
	f := Finding{Object: podName(p), Verdict: Waiting,
		Says: fmt.Sprintf("csi-attacher of the driver %s has yet to attach the volume to node %s (VolumeAttachment %s)",
			a.Spec.Attacher, p.Spec.NodeName, a.Name)}
	if len(a.Finalizers) == 0 {
		f.Verdict, f.Says = Broken,
			fmt.Sprintf("no csi-attacher has looked at VolumeAttachment %s: none runs for the driver %s", a.Name,
				a.Spec.Attacher)
		f.Advice = "run csi-attacher in the driver's controller, or set attachRequired: false in a new CSIDriver object if " +
			"the driver attaches nothing"
	}
	return []Finding{f}
}

// elsewhere reports a volume for one node that is attached to another node.
func (c *Cluster) elsewhere(p *corev1.Pod, v *corev1.PersistentVolume, a *storagev1.VolumeAttachment) Finding {
	f := Finding{Object: podName(p), Verdict: Broken,
		Says: fmt.Sprintf("the volume %s can be attached to one node only, and node %s has it (VolumeAttachment %s)", v.Name,
			a.Spec.NodeName, a.Name)}
	for i := range c.Pods {
		other := &c.Pods[i]
		if other.Namespace == p.Namespace && other.Spec.NodeName == a.Spec.NodeName && v.Spec.ClaimRef != nil &&
			slices.Contains(claimsOf(other), v.Spec.ClaimRef.Name) {
			f.Says += ", where " + podName(other) + " uses it"
			f.Advice = fmt.Sprintf("end %s, or run both pods on one node", podName(other))
			break
		}
	}
	return f
}

// single reports whether a volume can be used on one node only.
func single(v *corev1.PersistentVolume) bool {
	return !slices.ContainsFunc(v.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	})
}
