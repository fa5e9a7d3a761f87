package failure_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
)

func TestOfSystem(t *testing.T) {
	for err, want := range map[error]failure.Kind{
		syscall.ENOSPC:           failure.Exhausted,
		syscall.EDQUOT:           failure.Exhausted,
		syscall.EFBIG:            failure.OutOfRange,
		syscall.EPERM:            failure.Denied,
		syscall.EROFS:            failure.Unavailable,
		context.Canceled:         failure.Unavailable,
		context.DeadlineExceeded: failure.Unavailable,
		syscall.EINVAL:           failure.Unknown,
		errors.New("anything"):   failure.Unknown,
	} {
		if got := failure.OfSystem(fmt.Errorf("write: %w", err)); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	err := failure.Of(failure.Busy, "create", "v", errors.Join(syscall.EIO, syscall.EROFS))
	if want := `create "v": input/output error; read-only file system`; err.Error() != want ||
		failure.KindOf(err) != failure.Busy {
		t.Errorf("got %q of Kind %s, want %q", err, failure.KindOf(err), want)
	}
	if !failure.IsAny(err, syscall.ENOENT, syscall.EROFS) || failure.IsAny(err, syscall.ENOENT) {
		t.Error("the cause is not found")
	}
}
