package recycler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	storage "k8s.io/component-helpers/storage/volume"
)

// users holds the objects that show who may use a volume.
type users struct {
	claim       *corev1.PersistentVolumeClaim // with the name in the volume's claimRef
	pods        []corev1.Pod                  // in the namespace of that claim
	attachments []storagev1.VolumeAttachment
	nodes       []corev1.Node
	volumes     []corev1.PersistentVolume
	attaches    bool    // the volume must be attached to be mounted, with a VolumeAttachment
	reports     reports // of the node of a local volume
}

// of returns who may use the volume or its storage, or "".
func (u users) of(v *corev1.PersistentVolume) string {
	looks := []func(*corev1.PersistentVolume) string{u.inPods, u.attached, u.onNodes, u.elsewhere, u.unreported}
	for _, look := range looks {
		if reason := look(v); reason != "" {
			return reason
		}
	}
	return ""
}

// inPods checks the claim that the volume names, and the pods that use it.
func (u users) inPods(v *corev1.PersistentVolume) string {
	ref := v.Spec.ClaimRef
	if u.claim != nil && u.claim.UID == ref.UID {
		return fmt.Sprintf("the claim %s/%s still exists", ref.Namespace, ref.Name)
	}
	for i := range u.pods {
		pod := &u.pods[i]
		if pod.Spec.NodeName != "" && mounts(pod, ref.Name) && !u.isLater(pod) && !hasEnded(pod) {
			return fmt.Sprintf("the pod %s/%s still uses the claim %s", ref.Namespace, pod.Name, ref.Name)
		}
	}
	return ""
}

// isLater reports whether a pod was created after a later claim of the same name. A pod created before that claim
// counts as a user of the earlier claim.
func (u users) isLater(pod *corev1.Pod) bool {
	return u.claim != nil && !pod.CreationTimestamp.Before(&u.claim.CreationTimestamp)
}

func (u users) attached(v *corev1.PersistentVolume) string {
	for _, a := range u.attachments {
		if name := a.Spec.Source.PersistentVolumeName; name != nil && *name == v.Name {
			return "the volume is still attached to " + a.Spec.NodeName
		}
	}
	return ""
}

// onNodes checks the reports of kubelets. Without an attach step they report nothing. A kubelet that answers has
// stopped the deleted pods, and one that does not answer may not have.
func (u users) onNodes(v *corev1.PersistentVolume) string {
	for i := range u.nodes {
		node := &u.nodes[i]
		if v.Spec.CSI != nil && slices.Contains(node.Status.VolumesInUse, uniqueName(v.Spec.CSI)) {
			return "the kubelet of " + node.Name + " reports the volume in use"
		}
		if !u.attaches && canMount(node, v) && !isReady(node) {
			return "the node " + node.Name + " does not answer: a pod on it may still use the volume"
		}
	}
	return ""
}

func (u users) elsewhere(v *corev1.PersistentVolume) string {
	for i := range u.volumes {
		if o := &u.volumes[i]; o.UID != v.UID && overlap(&o.Spec, &v.Spec) {
			return "the PersistentVolume " + o.Name + " may show the same storage" + doubt(&o.Spec, &v.Spec)
		}
	}
	return ""
}

// doubt says why two volumes on paths of nodes count as one storage although they differ.
func doubt(a, b *corev1.PersistentVolumeSpec) (why string) {
	if pathOnNode(a) != pathOnNode(b) {
		why = fmt.Sprintf(": its path is %q", pathOnNode(a))
	}
	if pathOnNode(a) != "" && !equality.Semantic.DeepEqual(a.NodeAffinity, b.NodeAffinity) {
		why += ": the node affinities do not demand different values of one label"
	}
	return why
}

func uniqueName(source *corev1.CSIPersistentVolumeSource) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + source.Driver + "^" + source.VolumeHandle)
}

func mounts(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim ||
			volume.Ephemeral != nil && pod.Name+"-"+volume.Name == claim
	})
}

// canMount reports whether the volume's node affinity allows the node.
func canMount(node *corev1.Node, v *corev1.PersistentVolume) bool {
	return storage.CheckNodeAffinity(v, node.Labels) == nil
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// hasEnded reports whether no container of a pod runs, according to its kubelet. Other components write the phase for a
// node that is gone, and leave the container states unchanged.
func hasEnded(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed
	}
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return false
	}
	runs := func(s corev1.ContainerStatus) bool { return s.State.Running != nil }
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, runs) &&
		!slices.ContainsFunc(pod.Status.InitContainerStatuses, runs) &&
		!slices.ContainsFunc(pod.Status.EphemeralContainerStatuses, runs)
}

// lastWords returns a pod's termination message, or the message in its status.
func lastWords(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Terminated != nil && s.State.Terminated.Message != "" {
			return strings.TrimSpace(s.State.Terminated.Message)
		}
	}
	if pod.Status.Message != "" {
		return pod.Status.Message
	}
	return "the scrub pod failed without a word"
}
