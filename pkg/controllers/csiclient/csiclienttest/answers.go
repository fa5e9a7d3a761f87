package csiclienttest

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/absence"
)

// Refusals are answers after which nothing exists, unless an earlier request made it.
func Refusals() []error {
	return append(answers(
		codes.Internal, codes.PermissionDenied, codes.Unauthenticated, codes.Unknown, codes.Unimplemented,
	), Invalid(), Full())
}

// Invalid is the refusal of a request that asks for nothing that can be had.
func Invalid() error { return status.Error(codes.InvalidArgument, "there is no such thing") }

// Full is the refusal of a driver that has no room.
func Full() error { return status.Error(codes.ResourceExhausted, "there is no room") }

// Absent is a refusal with the proof that there is no volume of the name.
func Absent(refusal error) error {
	said, err := status.Convert(refusal).WithDetails(absence.Detail())
	if err != nil {
		panic(err) // The detail can be encoded.
	}
	return said.Err()
}

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
