package volumeworker

import (
	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// step is the next action for an order.
type step int

const (
	nothing step = iota
	begin        // write that parts of it may be on the node
	create
	adapt // change it to match the current spec
	remove
)

// next returns the next step for an order as read from the API server.
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

// outcome is the driver's answer.
type outcome struct {
	state  v1alpha1.OrderState
	note   func() // writes the result into the status, even after an error; may be nil
	err    error
	isOpen bool // the failure proves nothing about the order: retry
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

// refuse writes a failure. A failure that leaves the outcome open does not end the attempt: the worker retries.
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
