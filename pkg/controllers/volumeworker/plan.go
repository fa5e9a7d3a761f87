package volumeworker

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// step is what is to be done about a LocalVolume next.
type step int

const (
	nothing step = iota
	begin        // say that something of it may be on the node
	create
	expand
	remove
	agree // say that it is already as the spec wants it
)

// next decides about a LocalVolume as the API server has it.
func next(o *v1alpha1.LocalVolume) step {
	s := &o.Status
	switch {
	case s.Attempt == o.Spec.Attempt, s.State == v1alpha1.VolumeDeleted:
		return nothing
	case s.State == "" || s.State == v1alpha1.VolumeAbsent:
		if o.DeletionTimestamp != nil {
			return nothing // The object is being withdrawn.
		}
		return begin
	case o.Spec.Delete:
		return remove
	case s.State == v1alpha1.VolumeWorking:
		return create
	case s.Capacity == nil || s.Capacity.Value() < o.Spec.RequiredBytes:
		return expand
	}
	return agree
}

// wanted is the LocalVolume as a request to the driver.
func wanted(s *v1alpha1.LocalVolumeSpec) csiclient.Wanted {
	w := csiclient.Wanted{Name: s.VolumeName, RequiredBytes: s.RequiredBytes, LimitBytes: s.LimitBytes,
		Parameters: s.Parameters, Mutable: s.MutableParameters, Block: s.Access.Block}
	for _, mode := range s.Access.Modes {
		w.Modes = append(w.Modes, string(mode))
	}
	for _, m := range s.Access.Mounts {
		w.Mounts = append(w.Mounts, csiclient.Mount(m))
	}
	return w
}

// outcome is what the driver answered.
type outcome struct {
	state         v1alpha1.VolumeState
	bytes         int64 // of a volume that was made or has grown
	nodeExpansion bool
	err           error
	isOpen        bool // the failure says nothing of the volume: ask again
}

// report is the status after a step.
func report(o *v1alpha1.LocalVolume, done outcome) v1alpha1.VolumeStatus {
	s := *o.Status.DeepCopy()
	if done.err != nil {
		return refused(s, o.Spec.Attempt, done)
	}
	s.State, s.Attempt, s.Refusal, s.Message = done.state, o.Spec.Attempt, nil, ""
	if done.bytes > 0 {
		s.Capacity = resource.NewQuantity(done.bytes, resource.BinarySI)
	}
	s.NodeExpansion = s.NodeExpansion || done.nodeExpansion
	return s
}

// refused is the status after a failure. One that leaves the outcome open ends no attempt: the worker asks again.
func refused(s v1alpha1.VolumeStatus, attempt int64, done outcome) v1alpha1.VolumeStatus {
	s.Message = v1alpha1.Message(csiclient.Message(done.err))
	if done.isOpen || !csiclient.IsFinal(done.err) && csiclient.Reason(done.err) != "AlreadyExists" {
		return s
	}
	s.Attempt = attempt
	s.Refusal = &v1alpha1.VolumeRefusal{Reason: csiclient.Reason(done.err), Message: s.Message}
	if done.state != "" {
		s.State = done.state
	}
	return s
}
