package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func TestCodeOf(t *testing.T) {
	wrapped := func(kind backends.Kind, err error) error { return backends.Errorf(kind, "it failed: %w", err) }
	denied := status.Error(codes.PermissionDenied, "of a cloud")
	for _, test := range []struct {
		err  error
		want codes.Code
	}{
		{nil, codes.OK},
		{errors.New("plain"), codes.Internal},
		{backends.Errorf(backends.Kind(99), "x"), codes.Internal},
		{fmt.Errorf("outside: %w", backends.Errorf(backends.Busy, "x")), codes.Aborted},
		{wrapped(backends.Unknown, context.Canceled), codes.Canceled},
		{wrapped(backends.Unavailable, context.DeadlineExceeded), codes.DeadlineExceeded},
		{wrapped(backends.Invalid, context.DeadlineExceeded), codes.InvalidArgument},
		{status.Error(codes.DataLoss, "x"), codes.DataLoss},
		{wrapped(backends.Unavailable, denied), codes.Unavailable},
		{fmt.Errorf("asking the cloud: %w", denied), codes.Internal},
	} {
		if got := newAnswers().codeOf("DeleteVolume", test.err); got != test.want {
			t.Errorf("codeOf(%v) = %s, want %s", test.err, got, test.want)
		}
	}
}

// TestMessagesAreReadable: messages contain text of others, and go to events, conditions and terminals.
func TestMessagesAreReadable(t *testing.T) {
	for given, want := range map[string]string{
		"size 5 ≥ 4, café":    "size 5 ≥ 4, café",
		"label \x1b[2J\nroot": `label \x1b[2J\nroot`,
		"evil\u202egpj":       `evil\u202egpj`,
		"bad\xff":             `bad\ufffd`,
	} {
		err := newAnswers().statusOf("NodeStageVolume", backends.Errorf(backends.Invalid, "%s", given))
		if got := status.Convert(err).Message(); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

// TestMessageHas4KiB: docs/design/014 says "in 4 KiB at most", which includes the note about the omitted rest.
func TestMessageHas4KiB(t *testing.T) {
	for given, want := range map[string]string{
		strings.Repeat("x", mostMessage):       strings.Repeat("x", mostMessage),
		strings.Repeat("x", mostMessage+1):     "x... (37 bytes more)",
		strings.Repeat("x", 1<<20):             "x... (1044516 bytes more)",
		strings.Repeat("é", mostMessage):       "é... (4132 bytes more)",
		strings.Repeat("\n", mostMessage):      `\n... (2066 bytes more)`,
		strings.Repeat("\U000e0001", 1<<20):    `\U000e0001... (4192680 bytes more)`,
		strings.Repeat("x", 4000) + "\n" + "y": strings.Repeat("x", 4000) + `\ny`,
	} {
		err := newAnswers().statusOf("CreateVolume", backends.Errorf(backends.Invalid, "%s", given))
		if got := status.Convert(err).Message(); len(got) > 4096 || !strings.HasSuffix(got, want) {
			t.Errorf("%.8q of %d bytes makes a message of %d, which ends in %.60q, want %.60q", given, len(given), len(got),
				got[max(0, len(got)-60):], want)
		}
	}
}

// TestManyWrongParameters: the error names some parameters, and how many there are.
func TestManyWrongParameters(t *testing.T) {
	request := goodCreate()
	for i := range 10_000 {
		request.Parameters[fmt.Sprint("unknown-", i)] = "x"
	}
	_, err := testDecoder().createVolume(request)
	if err == nil || len(err.Error()) > mostMessage || !strings.Contains(err.Error(), "unknown-0") ||
		!strings.Contains(err.Error(), "9992 more") || !strings.Contains(err.Error(), "the known parameters are") {
		t.Errorf("got %.300v", err)
	}
}
