package doctor

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

const (
	selectedNode = "volume.kubernetes.io/selected-node"
	manual       = "kubernetes.io/no-provisioner"
)

// Claim examines a claim, the volume that it is bound to, and its users.
func (c *Cluster) Claim(namespace, name string) []Finding {
	claim := c.claim(namespace, name)
	if claim == nil {
		return []Finding{{Object: "claim " + namespace + "/" + name, Verdict: Broken, Says: "there is no such claim",
			Advice: "create it, or correct the name in the pod"}}
	}
	f := c.claimState(claim)
	if claim.DeletionTimestamp != nil {
		f = append(f, c.claimGoes(claim)...)
	}
	return f
}

func (c *Cluster) claimState(claim *corev1.PersistentVolumeClaim) []Finding {
	object := claimName(claim)
	switch claim.Status.Phase {
	case corev1.ClaimBound:
		return c.claimBound(claim)
	case corev1.ClaimLost:
		return []Finding{{Object: object, Verdict: Broken,
			Says: fmt.Sprintf("the PersistentVolume %s to which the claim was bound is gone", claim.Spec.VolumeName),
			Advice: "if the storage still has the volume, write a PersistentVolume for its handle and a new claim that names " +
				"it; this claim never binds again"}}
	case corev1.ClaimPending, "":
	}
	if claim.Spec.VolumeName != "" {
		return []Finding{c.waitsForVolume(claim)}
	}
	if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "" {
		return []Finding{{Object: object, Verdict: Broken,
			Says: "the claim names no StorageClass, so that nothing provisions a volume: it waits for a PersistentVolume " +
				"without a class",
			Advice: "name a class in a new claim, or mark a class as the default"}}
	}
	class := c.class(*claim.Spec.StorageClassName)
	if class == nil {
		return []Finding{{Object: object, Verdict: Broken,
			Says:   fmt.Sprintf("the StorageClass %q does not exist", *claim.Spec.StorageClassName),
			Advice: "create the class, or delete the claim and name one of: " + strings.Join(c.classNames(), ", ")}}
	}
	return c.provisioning(claim, class)
}

func (c *Cluster) classNames() (names []string) {
	for i := range c.Classes {
		names = append(names, c.Classes[i].Name)
	}
	return names
}

// waitsForVolume examines a claim that names its PersistentVolume.
func (c *Cluster) waitsForVolume(claim *corev1.PersistentVolumeClaim) Finding {
	f := Finding{Object: claimName(claim), Verdict: Broken}
	v := c.volume(claim.Spec.VolumeName)
	switch {
	case v == nil:
		f.Says, f.Advice = fmt.Sprintf("the claim asks for the PersistentVolume %s, which does not exist",
			claim.Spec.VolumeName), "create it, or a claim without volumeName"
	case v.Spec.ClaimRef != nil && (v.Spec.ClaimRef.Namespace != claim.Namespace || v.Spec.ClaimRef.Name != claim.Name ||
		v.Spec.ClaimRef.UID != "" && v.Spec.ClaimRef.UID != claim.UID):
		f.Says = fmt.Sprintf("the claim asks for the PersistentVolume %s, which belongs to claim %s/%s (UID %s, phase %s)",
			v.Name, v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name, v.Spec.ClaimRef.UID, v.Status.Phase)
		f.Advice = "if nobody needs the old claim's data any more, or this claim shall have them, remove spec.claimRef of " +
			"the PersistentVolume"
	default:
		f.Verdict, f.Says = Waiting,
			fmt.Sprintf("the PersistentVolume %s is %s: Kubernetes' volume controller has yet to bind it", v.Name,
				v.Status.Phase)
		if e := c.event("PersistentVolumeClaim", claim.Namespace, claim.Name, "VolumeMismatch", "FailedBinding"); e != nil {
			f.Verdict, f.Proof, f.Advice = Broken, proof(e),
				"make size, access modes, class and volume mode of claim and PersistentVolume agree"
		}
	}
	return f
}

// provisioning examines a claim for which a driver creates a volume.
func (c *Cluster) provisioning(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) []Finding {
	object := claimName(claim)
	if class.Provisioner == manual {
		return []Finding{{Object: object, Verdict: Waiting,
			Says: fmt.Sprintf("the class %s provisions nothing: the claim waits for a PersistentVolume of that class that is "+
				"large enough", class.Name),
			Advice: "kubectl get persistentvolumes, and kubectl get nodestorages where disks are found"}}
	}
	if class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer &&
		claim.Annotations[selectedNode] == "" {
		return c.consumer(claim, class)
	}
	if c.driver(class.Provisioner) == nil {
		return []Finding{{Object: object, Verdict: Broken,
			Says: fmt.Sprintf("the class %s names the driver %s, which is not installed (there is no CSIDriver object)",
				class.Name, class.Provisioner),
			Advice: "install the driver, or correct the class' provisioner"}}
	}
	if sick := c.controller(class.Provisioner); sick != nil {
		return append(sick, Finding{Object: object, Verdict: Waiting, Says: "the claim waits for the driver's controller"})
	}
	if e := c.event("PersistentVolumeClaim", claim.Namespace, claim.Name, "ProvisioningFailed"); e != nil {
		return []Finding{{Object: object, Verdict: Broken,
			Says:  fmt.Sprintf("the driver %s could not create the volume; csi-provisioner asks again", class.Provisioner),
			Proof: proof(e)}}
	}
	return []Finding{{Object: object, Verdict: Waiting,
		Says: fmt.Sprintf("the driver %s has been asked for a volume and has not answered", class.Provisioner)}}
}

// consumer examines a claim that waits until a pod that uses it has a node.
func (c *Cluster) consumer(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) []Finding {
	users := c.users(claim)
	if len(users) == 0 {
		return []Finding{{Object: claimName(claim), Verdict: Waiting,
			Says: fmt.Sprintf("the class %s waits for the first pod (WaitForFirstConsumer), and no pod uses the claim",
				class.Name),
			Advice: "create the pod; nothing else is needed"}}
	}
	var found []Finding
	for _, p := range users {
		found = append(found, c.unscheduled(p)...)
	}
	return append(found, Finding{Object: claimName(claim), Verdict: Waiting,
		Says: "the claim waits until the scheduler has chosen a node for " + podName(users[0])})
}

// claimBound examines a bound claim.
func (c *Cluster) claimBound(claim *corev1.PersistentVolumeClaim) []Finding {
	v := c.volume(claim.Spec.VolumeName)
	if v == nil {
		return []Finding{{Object: claimName(claim), Verdict: Broken,
			Says: fmt.Sprintf("the claim is bound to the PersistentVolume %s, which does not exist", claim.Spec.VolumeName),
			Advice: "Kubernetes marks the claim Lost soon: write a PersistentVolume for the volume's handle if the storage " +
				"still has it"}}
	}
	f := []Finding{c.place(claim, v)}
	f = append(f, c.growth(claim)...)
	return append(f, c.volumeState(v)...)
}

// place reports where a volume is and who uses it.
func (c *Cluster) place(claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) Finding {
	says := fmt.Sprintf("the claim is bound to PersistentVolume %s", v.Name)
	if csi := v.Spec.CSI; csi != nil {
		says += fmt.Sprintf(", volume %q of the driver %s", csi.VolumeHandle, csi.Driver)
	}
	for _, a := range c.attachments(v.Name) {
		says += fmt.Sprintf("; VolumeAttachment to node %s (attached: %t)", a.Spec.NodeName, a.Status.Attached)
	}
	users := c.users(claim)
	if len(users) == 0 {
		return Finding{Object: claimName(claim), Verdict: Fine, Says: says + "; no pod uses it"}
	}
	var names []string
	for _, p := range users {
		name := podName(p)
		if p.Spec.NodeName != "" {
			name += " on " + p.Spec.NodeName
		}
		names = append(names, name)
	}
	return Finding{Object: claimName(claim), Verdict: Fine, Says: says + "; used by " + strings.Join(names, ", ")}
}

// growth examines an expansion that is under way.
func (c *Cluster) growth(claim *corev1.PersistentVolumeClaim) []Finding {
	want, have := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if want.Cmp(have) <= 0 {
		return nil
	}
	f := Finding{Object: claimName(claim), Verdict: Waiting,
		Says: fmt.Sprintf("the claim has %s and asks for %s", have.String(), want.String())}
	pending := find(claim.Status.Conditions, func(c *corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue
	})
	e := c.event("PersistentVolumeClaim", claim.Namespace, claim.Name, "VolumeResizeFailed", "FileSystemResizeFailed")
	switch {
	case e != nil:
		f.Verdict, f.Proof, f.Advice = Broken, proof(e),
			"if the reason does not pass, lower the request to a size that fits; Kubernetes allows that above the present "+
				"capacity"
	case pending != nil && len(c.users(claim)) == 0:
		f.Says += ": the storage has grown, and the filesystem grows when a pod uses the claim"
	case pending != nil:
		f.Says += ": the storage has grown, and the kubelet has yet to let the filesystem grow"
	default:
		f.Says += ": csi-resizer has yet to answer"
	}
	return []Finding{f}
}

// claimGoes examines a claim that is being deleted.
func (c *Cluster) claimGoes(claim *corev1.PersistentVolumeClaim) []Finding {
	f := Finding{Object: claimName(claim), Verdict: Waiting,
		Says: fmt.Sprintf("the claim is being deleted and has the finalizers %s", strings.Join(claim.Finalizers, ", "))}
	var names []string
	for _, p := range c.users(claim) {
		names = append(names, podName(p))
	}
	if len(names) > 0 {
		f.Verdict, f.Says = Broken, "the claim is being deleted, and stays as long as it is used by "+strings.Join(names,
			", ")
		f.Advice = "delete these pods; the claim cannot be kept any more"
	}
	return []Finding{f}
}

func claimName(claim *corev1.PersistentVolumeClaim) string {
	return "claim " + claim.Namespace + "/" + claim.Name
}
