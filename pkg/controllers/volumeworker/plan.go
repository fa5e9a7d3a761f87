package volumeworker

import (
	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// step is what is to be done about an order next.
type step int

const (
	nothing step = iota
	begin        // say that something of it may be on the node
	create
	adapt // bring what was made to what the spec has now
	remove
)

// next decides about an order as the API server has it.
func next(o v1alpha1.Ordered) step {
	spec, status := o.Ordered()
	switch {
	case status.Attempt == spec.Attempt, status.State == v1alpha1.StateDeleted:
		return nothing
	case status.State == "" || status.State == v1alpha1.StateAbsent:
		if o.GetDeletionTimestamp() != nil {
			return nothing // The object is being withdrawn.
		}
		return begin
	case spec.Delete:
		return remove
	case status.State == v1alpha1.StateWorking:
		return create
	}
	return adapt
}

// outcome is what the driver answered.
type outcome struct {
	state  v1alpha1.OrderState
	note   func() // writes what is known of the thing into the status, also after an error; nil for nothing
	err    error
	isOpen bool // the failure says nothing of what was ordered: ask again
}

// report writes the outcome of a step into the status.
func report(o v1alpha1.Ordered, done outcome) {
	if done.note != nil {
		done.note()
	}
	spec, status := o.Ordered()
	if done.err != nil {
		refuse(status, spec.Attempt, done)
		return
	}
	status.State, status.Attempt, status.Refusal, status.Message = done.state, spec.Attempt, nil, ""
}

// refuse writes a failure. One that leaves the outcome open ends no attempt: the worker asks again.
func refuse(status *v1alpha1.OrderStatus, attempt int64, done outcome) {
	status.Message = v1alpha1.Message(csiclient.Message(done.err))
	if done.isOpen || !csiclient.IsFinal(done.err) && csiclient.Reason(done.err) != "AlreadyExists" {
		return
	}
	status.Attempt = attempt
	status.Refusal = &v1alpha1.Refusal{Reason: csiclient.Reason(done.err), Message: status.Message}
	if done.state != "" {
		status.State = done.state
	}
}
