package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// isRecycled reports whether the recycler is to scrub a volume whose claim is gone.
func isRecycled(v *corev1.PersistentVolume) bool {
	return v.DeletionTimestamp == nil && v.Annotations[v1alpha1.RecycleAnnotation] == "true" &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain &&
		(v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed)
}

// recycling examines such a volume. Its claimRef must stay: without it, the next claim would get the earlier data.
func (c *Cluster) recycling(v *corev1.PersistentVolume) Finding {
	f := Finding{Object: volumeName(v), Verdict: Waiting,
		Says:   "its claim is gone, and the recycler scrubs the volume before it makes it Available",
		Advice: "nothing; do not remove spec.claimRef, because the next claim would get the data of the earlier one"}
	recycler := find(c.Pods, func(p *corev1.Pod) bool { return recycles(p, v) })
	refusals := []string{v1alpha1.RecycleRefused, v1alpha1.ScrubRefused, v1alpha1.ClassNotNoted}
	e := c.event("PersistentVolume", "", v.Name, append(refusals, v1alpha1.RecycleWaits, v1alpha1.ScrubFailed)...)
	switch {
	case recycler == nil:
		f.Verdict, f.Says = Broken, fmt.Sprintf("its claim is gone, and it has the annotation %s, but no recycler runs for "+
			"its driver: the volume keeps its data and binds to nothing", v1alpha1.RecycleAnnotation)
		f.Advice = "install the recycler, or remove the annotation, and with it the promise that the volume is scrubbed"
	case v.Status.Phase == corev1.VolumeFailed && v1alpha1.HasRecyclingFailed(v):
		f.Verdict, f.Proof = Broken, v.Status.Message
		f.Says = "the recycler could not scrub the volume (phase Failed), and no claim can bind to it"
		f.Advice = fmt.Sprintf("remove the cause, and then the annotation %s: the volume is scrubbed again",
			v1alpha1.RecyclingAnnotation)
	case e != nil:
		f.Proof = proof(e)
		if slices.Contains(refusals, e.Reason) {
			f.Verdict, f.Says = Broken, "its claim is gone, and the recycler cannot go on"
		}
	}
	return f
}

// recycles reports whether a pod runs a recycler for the volume's driver.
func recycles(p *corev1.Pod, v *corev1.PersistentVolume) bool {
	return runs(p, func(arg string) bool { return arg == "recycler" }) && runs(p, func(arg string) bool {
		drivers, isList := strings.CutPrefix(arg, "--drivers=")
		return isList && slices.Contains(strings.Split(drivers, ","), v1alpha1.RecycledDriver(v))
	})
}
