package nfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// annotate completes the error of an operation: every method that is called from outside defers it, so that
// inside errors are plain and wrapped.
func annotate(err *error, op, subject string) {
	if *err != nil {
		*err = &backends.Error{Kind: classify(*err), Op: op, Volume: subject, Err: oneLine{advised(*err)}}
	}
}

// advised adds what can be done where a server refuses root.
func advised(err error) error {
	if classify(err) != backends.Denied || !isAny(err, unix.EACCES) && !errors.Is(err, tree.ErrOwner) {
		return err
	}
	return fmt.Errorf("%w: does the server make nobody of this machine's root (root_squash)? Export the share with no_root_squash to where the controller runs", err)
}

// oneLine is an error whose text is a single line, as it is shown in events and logs; errors.Join makes many.
type oneLine struct{ error }

// Error replaces line breaks.
func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }

// Unwrap returns the error as it was.
func (e oneLine) Unwrap() error { return e.error }

// classify is the Kind of an error: the one that it was given, or the one that its cause stands for.
func classify(err error) backends.Kind {
	if e, ok := errors.AsType[*backends.Error](err); ok {
		return e.Kind
	}
	switch {
	case errors.Is(err, tree.ErrMount), errors.Is(err, tree.ErrChanged):
		return backends.InUse
	case errors.Is(err, tree.ErrTooDeep):
		return backends.Invalid
	case errors.Is(err, tree.ErrOwner), errors.Is(err, tree.ErrAccess):
		return backends.Denied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return backends.Unavailable
	case isAny(err, unix.ENOSPC, unix.EDQUOT):
		return backends.Exhausted
	case isAny(err, unix.EACCES, unix.EPERM):
		return backends.Denied
	case isAny(err, unix.EFBIG):
		return backends.OutOfRange
	}
	return backends.Unavailable // A server that fails, restarts or is read-only may do better later.
}

func isAny(err error, errnos ...unix.Errno) bool {
	return slices.ContainsFunc(errnos, func(errno unix.Errno) bool { return errors.Is(err, errno) })
}
