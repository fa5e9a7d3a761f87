package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// The names that the recycler reads and writes.
const (
	// RecycleAnnotation of a PersistentVolume of policy Retain, with the value "true", has it scrubbed and made Available
	// after its release.
	RecycleAnnotation = "stowage.dev/recycle"

	// RecyclingAnnotation of a PersistentVolume says how far its recycling is. As a label of a scrub claim or pod it is
	// the volume's UID.
	RecyclingAnnotation = "stowage.dev/recycling"

	// UseQuestionAnnotation of a LocalVolume asks its node's worker whether the node uses the volume. The worker answers
	// in the status. The master writes it, with the UseQuestion of the PersistentVolume that is being recycled.
	UseQuestionAnnotation = "stowage.dev/use-question"

	// RecycledVolumeAnnotation names the PersistentVolume of a scrub claim or pod.
	RecycledVolumeAnnotation = "stowage.dev/recycled-volume"

	// RecyclerFinalizer keeps a scrub pod until its kubelet has said that it ended.
	RecyclerFinalizer = "stowage.dev/recycler"

	// RecycledClasses is the ServiceAccount, in the recycler's namespace, with the list of the classes in which there may
	// be unbound volumes that were recycled. An admission policy refuses claims with a data source in them. No program
	// uses the account: its kind is one that API servers watch as long as they run, so that the policy sees the list.
	RecycledClasses = "recycled-classes"

	// RecycledClassesAnnotation of that ServiceAccount is the list. Commas separate the classes.
	RecycledClassesAnnotation = "stowage.dev/recycled-classes"

	// NoClass stands in the list for volumes without a class. No class has such a name.
	NoClass = "_"
)

// The reasons of the recycler's events about a PersistentVolume that it does not make Available yet.
const (
	RecycleWaits   = "RecycleWaits"   // something uses the volume
	RecycleRefused = "RecycleRefused" // an administrator must change the volume
	ScrubRefused   = "ScrubRefused"   // the API server refuses the scrub's claim or pod
	ClassNotNoted  = "ClassNotNoted"  // RecycledClasses cannot be written
	ScrubFailed    = "ScrubFailed"    // the scrub's pod failed
)

// RecyclingFailed is the state, in the RecyclingAnnotation, after a scrub that failed.
const RecyclingFailed = "Failed"

// RecycledDriver returns the name by which a recycler is given volumes of this kind: the CSI driver's or that of
// Kubernetes' own plugin. It is empty for the plugins that no recycler handles.
func RecycledDriver(v *corev1.PersistentVolume) string {
	switch {
	case v.Spec.CSI != nil:
		return v.Spec.CSI.Driver
	case v.Spec.NFS != nil:
		return "kubernetes.io/nfs"
	case v.Spec.ISCSI != nil:
		return "kubernetes.io/iscsi"
	case v.Spec.Local != nil:
		return "kubernetes.io/local-volume"
	}
	return ""
}

// HasRecyclingFailed reports whether a volume's last scrub failed. The volume's phase alone does not say: it is still
// Failed while the next scrub begins.
func HasRecyclingFailed(v *corev1.PersistentVolume) bool {
	_, state := readRecycling(v.Annotations[RecyclingAnnotation])
	return state == RecyclingFailed
}

// UseQuestion returns the question whether a node uses the volume whose RecyclingAnnotation has this value; "" if there
// is none. Each state of each scrub has a question of its own: its answer is newer than the state.
func UseQuestion(recycling string) string {
	name, state := readRecycling(recycling)
	if name == "" {
		return ""
	}
	return name + "/" + state
}

// readRecycling returns the name and the state of the scrub in a RecyclingAnnotation, both empty if it is not readable.
func readRecycling(text string) (name, state string) {
	var record struct {
		Name  string `json:"name"`
		State string `json:"state"`
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return "", ""
	}
	return record.Name, record.State
}
