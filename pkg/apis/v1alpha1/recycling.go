package v1alpha1

import "encoding/json"

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

// UseQuestion returns the question whether a node uses the volume whose RecyclingAnnotation has this value; "" if there
// is none. Each state of each scrub has a question of its own: its answer is newer than the state.
func UseQuestion(recycling string) string {
	var record struct {
		Name  string `json:"name"`
		State string `json:"state"`
	}
	if err := json.Unmarshal([]byte(recycling), &record); err != nil || record.Name == "" {
		return ""
	}
	return record.Name + "/" + record.State
}
