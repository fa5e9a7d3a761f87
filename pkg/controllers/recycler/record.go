package recycler

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// state is how far one scrub is.
type state string

const (
	scrubbing state = "Scrubbing" // the volume may hold data
	clean     state = "Clean"     // the pod has verified that it holds none
	failed    state = "Failed"    // the volume may hold data; what the scrub made is removed, then another may begin
)

// record is the value of the annotation that says how far the recycling of a volume is.
type record struct {
	Name     string    `json:"name"` // of the scrub claim and pod
	State    state     `json:"state"`
	Claim    types.UID `json:"claim,omitempty"` // the UID of the scrub claim, once the volume names it
	Failures int       `json:"failures,omitempty"`
	Message  string    `json:"message,omitempty"`
}

// readRecord reads what stands on a volume, nil if nothing does.
func readRecord(v *corev1.PersistentVolume) (*record, error) {
	text, there := v.Annotations[v1alpha1.RecyclingAnnotation]
	if !there {
		return nil, nil // Nothing has begun.
	}
	r := &record{}
	err := json.Unmarshal([]byte(text), r)
	if err == nil && r.Name == "" {
		err = errors.New("it names no scrub")
	}
	if err != nil {
		return nil, fmt.Errorf(
			"the annotation %s is %q, which nobody can read: remove it to have the volume recycled anew: %w",
			v1alpha1.RecyclingAnnotation, text, err)
	}
	return r, nil
}

// isWanted reports whether a volume bears the annotation by which it is recycled.
func isWanted(v *corev1.PersistentVolume) bool {
	return v.Annotations[v1alpha1.RecycleAnnotation] == "true"
}
