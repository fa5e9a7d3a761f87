package recycler

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// state is the progress of one scrub.
type state string

const (
	scrubbing state = "Scrubbing" // the volume may hold data
	clean     state = "Clean"     // the pod has verified that it holds none
	// failed means that the volume may hold data, and that the scrub's objects are removed before another scrub.
	failed state = v1alpha1.RecyclingFailed
)

// record is the value of the annotation with the progress of a volume's recycling.
type record struct {
	Name     string    `json:"name"` // of the scrub claim and pod
	State    state     `json:"state"`
	Released types.UID `json:"released,omitempty"` // the UID of the claim whose release the scrub began after
	Claim    types.UID `json:"claim,omitempty"`    // the UID of the scrub claim, once the volume names it
	Failures int       `json:"failures,omitempty"`
	Message  string    `json:"message,omitempty"`
}

// readRecord reads the record on a volume, or returns nil if it has none.
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

// isWanted reports whether a volume has the annotation that requests recycling.
func isWanted(v *corev1.PersistentVolume) bool {
	return v.Annotations[v1alpha1.RecycleAnnotation] == "true"
}
