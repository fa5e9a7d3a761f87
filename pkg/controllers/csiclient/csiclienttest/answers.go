package csiclienttest

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/absence"
)

// Refusals returns answers after which nothing exists, unless an earlier request created it.
func Refusals() []error {
	return append(answers(
		codes.Internal, codes.PermissionDenied, codes.Unauthenticated, codes.Unknown, codes.Unimplemented,
	), Invalid(), Full())
}

// Invalid returns the refusal of an invalid request.
func Invalid() error { return status.Error(codes.InvalidArgument, "there is no such thing") }

// Full returns the refusal of a driver without room.
func Full() error { return status.Error(codes.ResourceExhausted, "there is no room") }

// Absent returns a refusal with the proof that no volume of the name exists.
func Absent(refusal error) error {
	said, err := status.Convert(refusal).WithDetails(absence.Detail())
	if err != nil {
		panic(err) // The detail can be encoded.
	}
	return said.Err()
}

// Open returns answers that leave the outcome of a request open.
func Open() []error {
	return answers(codes.DeadlineExceeded, codes.Unavailable, codes.Canceled)
}

// Busy returns the answer while another request of the same name is in progress.
func Busy() error { return status.Error(codes.Aborted, "a request of this name is at work") }

func answers(all ...codes.Code) (errors []error) {
	for _, code := range all {
		errors = append(errors, status.Error(code, "the driver says "+code.String()))
	}
	return errors
}
