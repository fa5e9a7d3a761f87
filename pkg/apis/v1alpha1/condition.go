package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is what metav1.Condition is, for a status that a worker writes: its time is a text, for the reason for
// which a Size is one.
type Condition struct {
	// Type of the condition, such as Ready.
	//
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// Status says whether it holds.
	//
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`

	// LastTransitionTime is when the status changed last.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`
	LastTransitionTime string `json:"lastTransitionTime"`

	// Reason in a word.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`

	// Message for people.
	//
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`
}

// SetCondition returns the conditions with one of them new or changed, at the time if its status changes.
func SetCondition(all []Condition, c Condition, now time.Time) []Condition {
	c.LastTransitionTime = now.UTC().Format(time.RFC3339)
	after := make([]Condition, 0, len(all)+1)
	isThere := false
	for _, other := range all {
		if other.Type == c.Type {
			isThere = true
			if other.Status == c.Status {
				c.LastTransitionTime = other.LastTransitionTime
			}
			other = c
		}
		after = append(after, other)
	}
	if !isThere {
		after = append(after, c)
	}
	return after
}
