package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Ordered is a LocalVolume, a LocalSnapshot or a LocalSnapshotGroup.
//
// +kubebuilder:object:generate=false
type Ordered interface {
	metav1.Object
	runtime.Object
	// Ordered is what is asked of the worker, and what came of it.
	Ordered() (*Order, *OrderStatus)
}

// Order is what every LocalVolume, LocalSnapshot and LocalSnapshotGroup asks of the worker of a node.
type Order struct {
	// Node is the name of the node.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// Attempt counts how often the worker was asked to bring about what the spec says. The status tells of which attempt
	// it speaks.
	//
	// +kubebuilder:validation:Minimum=1
	Attempt int64 `json:"attempt"`

	// Delete says that it is to be removed with its data.
	//
	// +optional
	Delete bool `json:"delete,omitempty"`
}

// OrderStatus is what the node's driver made of an Order. The worker on the node writes it.
type OrderStatus struct {
	// State of what was ordered. It is empty until the worker has begun: then, and only then, nothing of it can be on the
	// node.
	//
	// +optional
	State OrderState `json:"state,omitempty"`

	// Attempt is the last attempt of the spec that has ended, whichever way.
	//
	// +optional
	Attempt int64 `json:"attempt,omitempty"`

	// Refusal is why the last attempt that has ended came to nothing; none when it succeeded.
	//
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`

	// Message says for people what goes on, or why nothing does.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// OrderState is what there is on the node of what was ordered.
//
// +kubebuilder:validation:Enum=Working;Absent;Ready;Deleted
type OrderState string

// The states of what was ordered.
const (
	// StateWorking says that anything between nothing and all may be there.
	StateWorking OrderState = "Working"
	// StateAbsent says that the driver refused, with the proof that there is nothing of it.
	StateAbsent OrderState = "Absent"
	// StateReady says that it was made.
	StateReady OrderState = "Ready"
	// StateDeleted says that it was removed with its data.
	StateDeleted OrderState = "Deleted"
)

// Refusal is an error of the node's driver that asking again would not change at once.
type Refusal struct {
	// Reason is the driver's word for the failure.
	//
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`

	// Message is the driver's sentence.
	//
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}
