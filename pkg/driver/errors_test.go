package driver

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func TestCodeOf(t *testing.T) {
	wrapped := func(kind backends.Kind, err error) error { return backends.Errorf(kind, "it failed: %w", err) }
	for _, test := range []struct {
		err  error
		want codes.Code
	}{
		{nil, codes.OK},
		{errors.New("plain"), codes.Internal},
		{backends.Errorf(backends.Invalid, "x"), codes.InvalidArgument},
		{backends.Errorf(backends.NotFound, "x"), codes.NotFound},
		{backends.Errorf(backends.Exists, "x"), codes.AlreadyExists},
		{backends.Errorf(backends.OutOfRange, "x"), codes.OutOfRange},
		{backends.Errorf(backends.Exhausted, "x"), codes.ResourceExhausted},
		{backends.Errorf(backends.InUse, "x"), codes.FailedPrecondition},
		{backends.Errorf(backends.Busy, "x"), codes.Aborted},
		{backends.Errorf(backends.Unsupported, "x"), codes.Unimplemented},
		{backends.Errorf(backends.Denied, "x"), codes.PermissionDenied},
		{backends.Errorf(backends.Unavailable, "x"), codes.Unavailable},
		{backends.Errorf(backends.Unusable, "x"), codes.Unavailable},
		{backends.Errorf(backends.Unknown, "x"), codes.Internal},
		{backends.Errorf(backends.Kind(99), "x"), codes.Internal},
		{fmt.Errorf("outside: %w", backends.Errorf(backends.Busy, "x")), codes.Aborted},
		{wrapped(backends.Unknown, context.Canceled), codes.Canceled},
		{wrapped(backends.Unavailable, context.DeadlineExceeded), codes.DeadlineExceeded},
		{status.Error(codes.DataLoss, "x"), codes.DataLoss},
	} {
		if got := codeOf(test.err); got != test.want {
			t.Errorf("codeOf(%v) = %s, want %s", test.err, got, test.want)
		}
	}
}

// Whatever may have made a volume must come with a code after which csi-provisioner asks again.
func TestAmbiguousFailuresAreNeverFinal(t *testing.T) {
	for _, kind := range []backends.Kind{backends.Busy, backends.Unavailable, backends.Unusable} {
		switch code := codeOfKind(kind); code {
		case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted:
		default:
			t.Errorf("%s becomes %s, which is final", kind, code)
		}
	}
}
