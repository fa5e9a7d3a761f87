package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// volumeState finds everything that is wrong with a PersistentVolume.
func (c *Cluster) volumeState(v *corev1.PersistentVolume) (found []Finding) {
	found = append(found, c.storage(v)...)
	found = append(found, c.reach(v)...)
	for _, a := range c.attachments(v.Name) {
		found = append(found, c.attachment(a)...)
	}
	if v.Spec.CSI != nil && c.driver(v.Spec.CSI.Driver) == nil {
		found = append(found, Finding{Object: volumeName(v), Verdict: Broken,
			Says:   fmt.Sprintf("its driver %s is not installed (there is no CSIDriver object)", v.Spec.CSI.Driver),
			Advice: "install the driver before anything is done with the volume"})
	}
	return append(found, c.volumeGoes(v)...)
}

// storage repeats the events about a volume from the driver, csi-external-health-monitor and the orphan sweep.
func (c *Cluster) storage(v *corev1.PersistentVolume) (found []Finding) {
	for _, e := range []struct{ reason, advice string }{
		{"VolumeMissing", "restore the volume at the storage, or delete claim and PersistentVolume"},
		{"AttachedWithoutVolumeAttachment", "let stowage-manager detach it (--detach-dangling), or detach it at the storage"},
		{"AttachedElsewhere", "detach it from that machine at the storage"},
		{"VolumeConditionAbnormal", ""},
	} {
		if event := c.event("PersistentVolume", "", v.Name, e.reason); event != nil {
			found = append(found, Finding{Object: volumeName(v), Verdict: Broken,
				Says: "the storage and Kubernetes disagree about the volume, or the volume is not healthy", Proof: proof(event),
				Advice: e.advice})
		}
	}
	return found
}

// reach examines the nodes on which a volume can be used.
func (c *Cluster) reach(v *corev1.PersistentVolume) []Finding {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return nil
	}
	terms, err := nodeaffinity.NewNodeSelector(v.Spec.NodeAffinity.Required)
	if err != nil {
		return []Finding{{Object: volumeName(v), Verdict: Broken, Says: "the node affinity cannot be understood",
			Proof: err.Error()}}
	}
	var matching, ready []string
	for i := range c.Nodes {
		if n := &c.Nodes[i]; terms.Match(n) {
			matching = append(matching, n.Name)
			if isReady(n) {
				ready = append(ready, n.Name)
			}
		}
	}
	switch {
	case len(matching) == 0:
		return []Finding{{Object: volumeName(v), Verdict: Broken,
			Says:   "no node of the cluster has the labels that the volume's node affinity asks for: " + affinity(v),
			Advice: "add a node there, or bring the node back under its old name"}}
	case len(ready) == 0:
		return []Finding{{Object: volumeName(v), Verdict: Broken,
			Says:   fmt.Sprintf("the volume can be used on %s only, and none of them is ready", strings.Join(matching, ", ")),
			Advice: "bring one of these nodes back"}}
	}
	return nil
}

func affinity(v *corev1.PersistentVolume) string {
	var terms []string
	for _, term := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		var parts []string
		for _, e := range term.MatchExpressions {
			parts = append(parts, fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ",")))
		}
		terms = append(terms, strings.Join(parts, " and "))
	}
	return strings.Join(terms, ", or ")
}

// volumeGoes examines a PersistentVolume whose claim is gone, or that is being deleted.
func (c *Cluster) volumeGoes(v *corev1.PersistentVolume) []Finding {
	if isRecycled(v) {
		return []Finding{c.recycling(v)}
	}
	f := Finding{Object: volumeName(v), Verdict: Waiting}
	e := c.event("PersistentVolume", "", v.Name, "VolumeFailedDelete")
	attached := c.attachments(v.Name)
	switch {
	case v.Status.Phase == corev1.VolumeFailed:
		f.Verdict, f.Says, f.Proof = Broken, "Kubernetes has given the volume up (phase Failed)", v.Status.Message
	case v.Status.Phase == corev1.VolumeReleased &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain:
		f.Verdict = Fine
		f.Says = "its claim is gone and its policy is Retain: the volume keeps its data and binds to nothing"
		if claim := v.Spec.ClaimRef; claim != nil {
			f.Says = fmt.Sprintf("its claim %s/%s is gone and its policy is Retain: the volume keeps its data and binds to "+
				"nothing", claim.Namespace, claim.Name)
		}
		f.Advice = "remove spec.claimRef for a new claim, or delete the PersistentVolume and the volume at the storage"
	case v.DeletionTimestamp == nil && v.Status.Phase != corev1.VolumeReleased:
		return nil
	case v.DeletionTimestamp != nil && v.Status.Phase == corev1.VolumeBound:
		f.Verdict, f.Says = Broken,
			"the PersistentVolume is being deleted while its claim is bound: it stays until the claim is gone, and cannot be "+
				"kept"
	case len(attached) > 0:
		f.Says = fmt.Sprintf("the volume is deleted when it is detached from node %s", attached[0].Spec.NodeName)
	case e != nil:
		f.Verdict, f.Says, f.Proof = Broken, "the driver could not delete the volume; csi-provisioner asks again", proof(e)
	default:
		f.Says = "the volume is being deleted and has the finalizers " + strings.Join(v.Finalizers, ", ")
	}
	found := []Finding{f}
	if f.Verdict != Fine && v.Spec.CSI != nil && slices.ContainsFunc(v.Finalizers,
		func(name string) bool { return strings.HasPrefix(name, "external-provisioner.") }) {
		found = append(found, c.controller(v.Spec.CSI.Driver)...)
	}
	return found
}

func volumeName(v *corev1.PersistentVolume) string { return "PersistentVolume " + v.Name }
