package volumeset

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// Reasons of the condition Ready.
const (
	reasonFilled             = "Filled"
	reasonRolling            = "Rolling"
	reasonRetained           = "RetainedOutdated"
	reasonFilling            = "Filling"
	reasonMaximum            = "MaximumReached"
	reasonRefused            = "CreationFailed"
	reasonClassNotFound      = "StorageClassNotFound"
	reasonClassUnusable      = "StorageClassUnusable"
	reasonAttributesUnusable = "AttributesClassUnusable"
	reasonTemplate           = "TemplateRefused"
	reasonUnproven           = "TemplateUnproven"
	reasonAltered            = "TemplateAltered"
	reasonRelabelled         = "VolumesRelabelled"
	reasonTooLarge           = "TooLarge"
	reasonNowhere            = "NoPlace"
	reasonTwin               = "SelectorShared"
	reasonShort              = "VolumesTooSmall"
)

// verdict is the reason and message of the condition Ready.
type verdict struct{ reason, message string }

// judge reports whether enough volumes are ready and, if not, why. Problem is the reason why the set creates no
// volumes, or empty.
func judge(set *v1alpha1.PersistentVolumeSet, c census, problem verdict) verdict {
	minimum, maximum := int(set.Spec.MinimumReplicas), int(set.Spec.MaximumReplicas)
	missing, isFull := minimum-c.ready, c.slots == 0 && c.fresh == 0 && c.total >= maximum
	if isFull && problem.reason == reasonRefused { // Outdated: a full set sends no requests.
		problem = verdict{}
	}
	switch {
	case set.DeletionTimestamp != nil && c.slots > 0:
		return held(c, problem)
	case missing <= 0 && c.current >= minimum:
		return verdict{reasonFilled, fmt.Sprintf("%d volumes are ready; %d are wanted%s", c.ready, minimum, leftover(c))}
	case missing <= 0:
		return rolling(c, minimum, maximum, problem)
	case problem.reason != "":
		return problem
	case c.short > 0 && c.current+c.coming() < minimum:
		return verdict{reasonShort,
			fmt.Sprintf("%d volumes are ready, %d are wanted, and the driver has made %d that are smaller than the"+
				" template says, so that no others are created in their stead: delete their PersistentVolumes once it makes "+
				"larger ones,"+
				" or lower the template's capacity", c.ready, minimum, c.short)}
	case isFull:
		others := c.total - c.bound - c.unbound() - c.unfit - c.deleting
		return verdict{reasonMaximum,
			fmt.Sprintf("%d volumes are ready, %d are wanted, and there are %d of at most %d: %d bound, %d released or failed"+
				"%s, %d of another class, size or mode, %d being deleted%s; raise maximumReplicas, or delete PersistentVolumes "+
				"that nobody needs%s",
				c.ready, minimum, c.total, maximum, c.bound, others, whyEnded(c.ended), c.unfit, c.deleting, stays(c),
				leftover(c))}
	}
	return verdict{reasonFilling, fmt.Sprintf("%d volumes are ready, %d are wanted, and %d are being created", c.ready,
		minimum, c.slots+c.fresh)}
}

// held reports why a set that is being deleted still exists.
func held(c census, problem verdict) verdict {
	if problem.reason != "" {
		return problem
	}
	return verdict{reasonFilling, fmt.Sprintf("the set is being deleted, and goes once it is known what became of %d "+
		"volumes in the making", c.slots)}
}

// rolling reports the progress of a changed template while enough volumes are ready, including those of earlier
// templates.
func rolling(c census, minimum, maximum int, problem verdict) verdict {
	begin := fmt.Sprintf("%d volumes are ready, and %d of %d are of this template", c.ready, c.current, minimum)
	switch {
	case problem.reason == reasonRefused: // It is tried again.
		return verdict{reasonRolling, fmt.Sprintf("%s; %d are being created, and the last attempt failed: %s", begin,
			c.slots, problem.message)}
	case problem.reason != "":
		return verdict{reasonRolling, begin + "; no more are created: " + problem.message}
	case c.slots == 0 && c.outdated == 0 && c.deleting == 0 && c.total >= maximum:
		return verdict{reasonRetained, fmt.Sprintf("%s%s, or raise maximumReplicas: there are %d of at most %d", begin,
			leftover(c), c.total, maximum)}
	}
	return verdict{reasonRolling, fmt.Sprintf("%s; %d are being created", begin, c.slots)}
}

// whyEnded names a released or failed volume and gives the reason why it still exists, as far as Kubernetes reports it.
func whyEnded(v *corev1.PersistentVolume) string {
	switch {
	case v == nil:
		return ""
	case v.Status.Message != "":
		return fmt.Sprintf(" (%s: %s)", v.Name, v.Status.Message)
	}
	isMarked, policy := v.Annotations[v1alpha1.RecycleAnnotation] == "true", v.Spec.PersistentVolumeReclaimPolicy
	switch {
	case isMarked && policy == corev1.PersistentVolumeReclaimRetain: // The recycler refuses all others.
		return fmt.Sprintf(" (%s is for the recycler to scrub: its events say why it is still there)", v.Name)
	case isMarked && policy == corev1.PersistentVolumeReclaimDelete:
		return fmt.Sprintf(" (%s is for its driver to delete, and not for the recycler, which scrubs only volumes of policy "+
			"Retain: its events say why it is still there)", v.Name)
	case policy == corev1.PersistentVolumeReclaimDelete:
		return fmt.Sprintf(" (%s is for its driver to delete: its events say why it is still there)", v.Name)
	}
	return fmt.Sprintf(" (as %s, which its policy %s keeps)", v.Name, policy)
}

// stays returns the driver's error for a volume that it did not delete.
func stays(c census) string {
	if c.undeleted == "" {
		return ""
	}
	return " (" + c.undeleted + ")"
}

// leftover reports the number of unbound volumes of earlier templates that stay.
func leftover(c census) string {
	if c.retained == 0 {
		return ""
	}
	return fmt.Sprintf("; %d unbound ones are of an earlier template and of policy Retain, so that the set does not "+
		"delete them: delete them by hand", c.retained)
}

// write writes a census and a verdict into the status.
func write(set *v1alpha1.PersistentVolumeSet, c census, v verdict) {
	s := &set.Status
	s.ObservedGeneration = set.Generation
	s.BoundReplicas, s.UnboundReplicas = int32(c.bound), int32(c.ready)        // The API server bounds them.
	s.CreatingReplicas, s.DeletingReplicas = int32(c.slots), int32(c.deleting) // The API server bounds them.
	s.Selector = selector(set).String()
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v.reason,
		Message: bounded(v.message, mostMessage), ObservedGeneration: set.Generation,
	}
	if v.reason == reasonFilled || v.reason == reasonRolling || v.reason == reasonRetained {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Conditions, condition)
}

// mostMessage is the maximum length of a condition's message, in bytes. Parts of it come from others, for example an
// API server that repeats the refused object. A status with a message of more than 32,768 characters would always be
// refused.
const mostMessage = 4096

// bounded cuts a message after the given number of bytes, and then appends the number of bytes left out.
func bounded(message string, most int) string {
	if len(message) <= most {
		return message
	}
	begin := strings.ToValidUTF8(message[:most], "")
	return fmt.Sprintf("%s... (%d bytes more)", begin, len(message)-most)
}

// selector selects the volumes of a set.
func selector(set *v1alpha1.PersistentVolumeSet) labels.Selector {
	wanted := labels.Set{}
	for key, value := range set.Spec.Selector {
		wanted[key] = string(value)
	}
	return labels.SelectorFromSet(wanted)
}
