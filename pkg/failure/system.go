package failure

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
)

// OfSystem returns the Kind of an error of the operating system or of a context; Unknown for all others. A disk that
// fails or is missing, and a process without free descriptors or memory, may recover: these are Unavailable.
func OfSystem(err error) Kind {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Unavailable
	case IsAny(err, syscall.ENOSPC, syscall.EDQUOT):
		return Exhausted
	case IsAny(err, syscall.EFBIG):
		return OutOfRange
	case IsAny(err, syscall.EACCES, syscall.EPERM):
		return Denied
	case IsAny(err, syscall.EIO, syscall.EROFS, syscall.ENOENT, syscall.ENOTDIR, syscall.ENODEV, syscall.ENXIO,
		syscall.ESTALE,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EBUSY, syscall.ETIMEDOUT):
		return Unavailable
	}
	return Unknown
}

// byDefault returns the Kind of an error that no code has classified. A kubelet gives up after any other Kind of
// OfSystem, such as Denied, and only the caller of the operating system knows whether something was left behind. The
// end of a context is the caller's doing, and stays Unknown.
func byDefault(err error) Kind {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Unknown
	}
	if kind := OfSystem(err); kind == Exhausted || kind == Unavailable {
		return kind
	}
	return Unknown
}

// IsAny reports whether err is one of the kernel's errors.
func IsAny(err error, errnos ...syscall.Errno) bool {
	return slices.ContainsFunc(errnos, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// Of returns an Error of the Kind that names the operation and the volume, with a text of one line.
func Of(kind Kind, op, volume string, err error) error {
	return &Error{Kind: kind, Op: op, Volume: volume, Err: OneLine(err)}
}

// OneLine returns the error with a text of a single line, as events and logs show it; errors.Join makes several lines.
func OneLine(err error) error { return oneLine{err} }

type oneLine struct{ error }

// Error replaces line breaks, and removes zero bytes, which protobuf and logs cannot carry.
func (e oneLine) Error() string {
	return strings.NewReplacer("\n", "; ", "\x00", "").Replace(e.error.Error())
}

// Unwrap returns the original error.
func (e oneLine) Unwrap() error { return e.error }
