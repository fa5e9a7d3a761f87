package localvolume

import (
	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// unreachable is an error of the API server: what was asked may have happened.
func unreachable(err error) error {
	if err == nil {
		return nil
	}
	return backends.Errorf(backends.Unavailable, "Kubernetes does not do what the master asks: %w", err)
}

func notFound(handle string) error {
	return backends.Errorf(backends.NotFound, "there is no volume %q", handle)
}

// refusal is what the node's driver said of the last attempt.
func refusal(o *v1alpha1.LocalVolume) error {
	r := o.Status.Refusal
	if r == nil { // The worker agrees, and has done nothing that was asked.
		return backends.Errorf(backends.Unavailable, "the worker of node %s says that the volume %s is as it was asked for, "+
			"which it is not: look whether it is of the master's version", o.Spec.Node, o.Name)
	}
	return backends.Errorf(kindOf(r.Reason), "node %s: %s", o.Spec.Node, r.Message)
}

// kindOf is the Kind of gRPC's word for a failure.
func kindOf(reason string) backends.Kind {
	switch reason {
	case "InvalidArgument":
		return backends.Invalid
	case "NotFound":
		return backends.NotFound
	case "AlreadyExists":
		return backends.Exists
	case "OutOfRange":
		return backends.OutOfRange
	case "ResourceExhausted":
		return backends.Exhausted
	case "FailedPrecondition":
		return backends.InUse
	case "PermissionDenied":
		return backends.Denied
	case "Unimplemented":
		return backends.Unsupported
	}
	return backends.Unusable
}
