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

// TestDefaultKindsAreNotFinal checks every error of the kernel without an Error around it: the kubelet retries after
// these Kinds, and forgets the volume after most others (docs/design/014).
func TestDefaultKindsAreNotFinal(t *testing.T) {
	const most = 133 // errno(3): the highest number
	seen := map[failure.Kind]int{}
	for errno := syscall.Errno(1); errno <= most; errno++ {
		kind := failure.KindOf(errno)
		seen[kind]++
		switch kind {
		case failure.Unknown, failure.Exhausted, failure.Unavailable:
		default:
			t.Errorf("%v is %q without an Error around it, after which the kubelet may forget the volume", errno, kind)
		}
	}
	if seen[failure.Exhausted] != 2 || seen[failure.Unavailable] < 10 {
		t.Errorf("%d errors are %q and %d are %q, want 2 and at least 10", seen[failure.Exhausted], failure.Exhausted,
			seen[failure.Unavailable], failure.Unavailable)
	}
}
