package driver

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// codeOf is the only map from failures to gRPC codes (CSI spec, "Error Scheme"). A cancelled or expired
// call keeps its own code, whatever Kind a backend gave it: the orchestrator asks again.
func codeOf(err error) codes.Code {
	switch {
	case err == nil:
		return codes.OK
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codeOfKind(backends.KindOf(err))
}

func codeOfKind(kind backends.Kind) codes.Code {
	switch kind {
	case backends.Invalid:
		return codes.InvalidArgument
	case backends.NotFound:
		return codes.NotFound
	case backends.Exists:
		return codes.AlreadyExists
	case backends.OutOfRange:
		return codes.OutOfRange
	case backends.Exhausted:
		return codes.ResourceExhausted
	case backends.InUse:
		return codes.FailedPrecondition
	case backends.Busy:
		return codes.Aborted
	case backends.Unsupported:
		return codes.Unimplemented
	case backends.Denied:
		return codes.PermissionDenied
	case backends.Unavailable, backends.Unusable: // Every sidecar asks again, and forgets nothing.
		return codes.Unavailable
	case backends.Unknown:
		return codes.Internal
	}
	return codes.Internal
}

// statusOf makes the error that the orchestrator sees.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codeOf(err), err.Error())
}
