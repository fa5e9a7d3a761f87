package recycler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// step is the next thing to do.
type step string

const (
	nothing   step = ""
	refuse    step = "refuse"    // report why the volume is never recycled
	wait      step = "wait"      // check again later
	work      step = "work"      // check again later: the scrub is running
	begin     step = "begin"     // write a record with a new name
	makeClaim step = "makeClaim" // create the scrub claim
	point     step = "point"     // set the volume's claimRef to the scrub claim
	makePod   step = "makePod"
	passed    step = "passed" // write that the volume is clean
	broke     step = "broke"  // write that the scrub failed
	drop      step = "drop"   // remove the record
	endPod    step = "endPod" // delete the pod
	freePod   step = "freePod"
	endClaim  step = "endClaim"
	noteClass step = "noteClass" // write that the volume's class may have recycled volumes
	giveBack  step = "giveBack"  // remove claimRef and record: the volume becomes Available
	giveUp    step = "giveUp"    // write the phase Failed
)

// view holds the data for a decision about one volume.
type view struct {
	volume   *corev1.PersistentVolume
	record   *record
	attempts int
	claim    *corev1.PersistentVolumeClaim // the scrub claim
	pod      *corev1.Pod                   // the scrub pod
	users    users
	noted    bool // the volume's class is known to have recycled volumes
}

// plan returns the next step, and the reason if the volume waits, fails or is refused.
func plan(v view) (step, string) {
	policy := v.volume.Spec.PersistentVolumeReclaimPolicy
	isRetained := policy == corev1.PersistentVolumeReclaimRetain
	if !isWanted(v.volume) || v.volume.DeletionTimestamp != nil || !isRetained {
		if v.record != nil {
			if next, why := v.halt(); next != nothing {
				return next, why
			}
		}
		if isWanted(v.volume) && !isRetained {
			return refuse, fmt.Sprintf(
				"the volume bears %s=true, and its reclaim policy is %s: only volumes of the policy Retain are recycled, "+
					"since others would be deleted meanwhile; change persistentVolumeReclaimPolicy to Retain, "+
					"or remove the annotation",
				v1alpha1.RecycleAnnotation, policy)
		}
		return nothing, ""
	}
	switch {
	case v.volume.Spec.ClaimRef == nil && !v.noted:
		return v.noteFreed()
	case v.record == nil:
		return v.start()
	case v.record.State == scrubbing:
		return v.scrub()
	case v.record.State == clean:
		return v.cleanup(giveBack)
	case v.record.Failures >= v.attempts:
		return v.cleanup(giveUp)
	default:
		return v.cleanup(begin)
	}
}

// halt ends a scrub that is no longer wanted. The record of a running scrub is dropped too. Otherwise its missing claim
// would count as a failure when recycling resumes.
func (v view) halt() (step, string) {
	next, why := v.cleanup(nothing)
	if next == nothing && v.record.State == scrubbing {
		next = drop
	}
	return next, why
}

// isReleased reports whether the volume's claim is gone.
func (v view) isReleased() bool {
	phase := v.volume.Status.Phase
	return v.volume.Spec.ClaimRef != nil && (phase == corev1.VolumeReleased || phase == corev1.VolumeFailed)
}

// isPointed reports whether the volume names the scrub claim.
func (v view) isPointed() bool {
	ref := v.volume.Spec.ClaimRef
	return v.record != nil && v.record.Claim != "" && ref != nil && ref.UID == v.record.Claim
}

// noteFreed notes the class of an unbound volume. A recycler that noted no class may have given it back, or a person
// may have freed it at any point of a scrub. The scrub's objects are deleted before: that must not depend on the list.
func (v view) noteFreed() (step, string) {
	if next, why := v.dismantle(); next != nothing && next != wait {
		return next, why
	}
	return noteClass, ""
}

// start begins a scrub once the volume is unused.
func (v view) start() (step, string) {
	if !v.isReleased() {
		return nothing, ""
	}
	if reason := v.users.of(v.volume); reason != "" {
		return wait, reason
	}
	return begin, ""
}

// take sets the volume's claimRef to the scrub claim. A volume that has had a new claim since the scrub began is
// recycled anew after that claim's release: the delay and the reports so far say nothing of its users. This does not
// count as a failed scrub.
func (v view) take() (step, string) {
	if !v.isReleased() || v.volume.Spec.ClaimRef.UID != v.record.Released {
		if next, why := v.dismantle(); next != nothing {
			return next, why
		}
		return drop, ""
	}
	if reason := v.users.of(v.volume); reason != "" {
		return wait, reason
	}
	switch {
	case v.claim == nil:
		return makeClaim, ""
	case !isOf(v.claim, v.volume.UID) || v.claim.DeletionTimestamp != nil:
		return broke, fmt.Sprintf("the claim %s/%s is somebody else's, or is being deleted", v.claim.Namespace, v.claim.Name)
	}
	return point, ""
}

// scrub advances a scrub until its pod has ended.
func (v view) scrub() (step, string) {
	if !v.isPointed() {
		return v.take()
	}
	switch {
	case v.claim == nil || v.claim.UID != v.record.Claim || v.claim.DeletionTimestamp != nil:
		return broke, "somebody deleted the scrub claim"
	case v.claim.Status.Phase != corev1.ClaimBound:
		return wait, fmt.Sprintf("the scrub claim %s/%s is not bound yet", v.claim.Namespace, v.claim.Name)
	case v.pod == nil:
		return v.erase()
	}
	return v.judge()
}

// erase creates the scrub pod, unless a PersistentVolume that was created meanwhile has the same storage.
func (v view) erase() (step, string) {
	if reason := v.users.elsewhere(v.volume); reason != "" {
		return wait, reason
	}
	return makePod, ""
}

// judge evaluates the state of the scrub pod.
func (v view) judge() (step, string) {
	switch {
	case !isOf(v.pod, v.volume.UID):
		return broke, fmt.Sprintf("the pod %s/%s is somebody else's", v.pod.Namespace, v.pod.Name)
	case hasEnded(v.pod) && v.pod.Status.Phase == corev1.PodFailed:
		return broke, lastWords(v.pod)
	case v.pod.DeletionTimestamp != nil: // Even if it succeeded: earlier images succeed when they are told to stop.
		return broke, "somebody deleted the scrub pod"
	case hasEnded(v.pod) && v.pod.Status.Phase == corev1.PodSucceeded:
		return passed, ""
	case v.pod.Status.Phase == corev1.PodRunning:
		return work, fmt.Sprintf("the scrub pod %s/%s works", v.pod.Namespace, v.pod.Name)
	}
	return wait, v.idle()
}

// idle returns why a scrub pod that has not ended does not run.
func (v view) idle() string {
	begin := fmt.Sprintf("the scrub pod %s/%s ", v.pod.Namespace, v.pod.Name)
	if v.pod.Status.Phase == corev1.PodSucceeded || v.pod.Status.Phase == corev1.PodFailed {
		return fmt.Sprintf("%sis %s, and the kubelet of %s does not say that it has ended", begin, v.pod.Status.Phase,
			v.pod.Spec.NodeName)
	}
	if v.pod.Spec.NodeName == "" {
		return begin + "is on no node yet" + unscheduled(v.pod)
	}
	for _, s := range v.pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			return fmt.Sprintf("%sdoes not run on %s yet: %s %s", begin, v.pod.Spec.NodeName, w.Reason, w.Message)
		}
	}
	return begin + "does not run on " + v.pod.Spec.NodeName + " yet"
}

// unscheduled returns the scheduler's message about a pod.
func unscheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Message != "" {
			return ": " + c.Message
		}
	}
	return ""
}

// cleanup removes the scrub's pod, then its claim, then takes the last step.
func (v view) cleanup(last step) (step, string) {
	if next, why := v.dismantle(); next != nothing || last == nothing {
		return next, why
	}
	switch {
	case !v.isReleased() && (last == giveUp || !v.isPointed()):
		return nothing, v.record.Message // Its release causes an event.
	case !v.isReleased():
		return wait, "the volume is not Released yet"
	case last == giveUp && v.volume.Status.Phase == corev1.VolumeFailed:
		return nothing, v.record.Message
	case last == giveUp:
		return giveUp, v.record.Message
	case last == giveBack && !v.isPointed():
		return broke, "the volume has had another claim since it was scrubbed"
	}
	if reason := v.users.of(v.volume); reason != "" {
		return wait, reason
	}
	return v.afterClass(last), ""
}

// afterClass returns the step, or noteClass before it: a volume is given back only once its class is noted.
func (v view) afterClass(next step) step {
	if next == giveBack && !v.noted {
		return noteClass
	}
	return next
}

// dismantle removes the pod, then the claim.
func (v view) dismantle() (step, string) {
	isOurPod := v.pod != nil && isOf(v.pod, v.volume.UID)
	isOurClaim := v.claim != nil && isOf(v.claim, v.volume.UID)
	switch {
	case isOurPod && v.pod.DeletionTimestamp == nil:
		return endPod, ""
	case isOurPod && hasEnded(v.pod) && isHeld(v.pod):
		return freePod, ""
	case isOurPod:
		return wait, fmt.Sprintf("the pod %s/%s has been deleted, and the kubelet of %s does not say that it has ended",
			v.pod.Namespace, v.pod.Name, v.pod.Spec.NodeName)
	case isOurClaim && v.claim.DeletionTimestamp == nil:
		return endClaim, ""
	case isOurClaim:
		return wait, fmt.Sprintf("the scrub claim %s/%s is being deleted", v.claim.Namespace, v.claim.Name)
	}
	return nothing, ""
}

// isOf reports whether a scrub claim or pod belongs to this very volume.
func isOf(o metav1.Object, volume types.UID) bool {
	return o.GetLabels()[v1alpha1.RecyclingAnnotation] == string(volume)
}
