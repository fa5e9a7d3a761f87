package localvolume

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// unreachable converts an error of the API server. The requested change may have happened.
func unreachable(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsBadRequest(err):
		return backends.Errorf(backends.Unavailable, "Kubernetes does not take what the master writes: look whether "+
			"deploy/kubernetes/crds was applied in the master's version: %w", err)
	}
	return backends.Errorf(backends.Unavailable, "Kubernetes does not do what the master asks: %w", err)
}

// whyRefused returns the error of the node's driver for the last attempt.
func (s *orders[O]) whyRefused(o O) error {
	_, status := o.Ordered()
	if status.Refusal == nil { // The worker reports success, but has not done what was requested.
		return backends.Errorf(backends.Unavailable, "the worker of node %s says that the %s %s is as it was asked for, "+
			"which it is not: look whether it is of the master's version", nodeOf(o), s.word, o.GetName())
	}
	return backends.Errorf(kindOf(status.Refusal.Reason), "node %s: %s", nodeOf(o), status.Refusal.Message)
}

// kindOf returns the Kind for the name of a gRPC code.
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
