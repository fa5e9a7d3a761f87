package csiclienttest

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Refusals are answers after which nothing exists, unless an earlier request made it.
func Refusals() []error {
	return append(answers(
		codes.Internal, codes.PermissionDenied, codes.Unauthenticated, codes.Unknown, codes.Unimplemented, codes.InvalidArgument,
	), Full())
}

// Full is the refusal of a driver that has no room.
func Full() error { return status.Error(codes.ResourceExhausted, "there is no room") }

// Open are answers that leave open what became of a request.
func Open() []error {
	return answers(codes.DeadlineExceeded, codes.Unavailable, codes.Canceled)
}

// Busy is the answer while another request of the same name is at work.
func Busy() error { return status.Error(codes.Aborted, "a request of this name is at work") }

func answers(all ...codes.Code) (errors []error) {
	for _, code := range all {
		errors = append(errors, status.Error(code, "the driver says "+code.String()))
	}
	return errors
}
