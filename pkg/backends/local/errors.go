package local

import (
	"errors"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/freeze"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// annotate completes the error of an operation. Every method that is called from outside defers it, so that errors
// inside the package are plain and wrapped.
func annotate(err *error, op, subject string) {
	if *err != nil {
		*err = failure.Of(classify(*err), op, subject, *err)
	}
}

// classify returns the Kind of an error: its own, or the one that its cause implies.
func classify(err error) backends.Kind {
	if e, ok := errors.AsType[*backends.Error](err); ok {
		return e.Kind
	}
	switch {
	case errors.Is(err, freeze.ErrLimit), errors.Is(err, freeze.ErrThawed), errors.Is(err, freeze.ErrStillFrozen),
		errors.Is(err, tree.ErrMount):
		return backends.InUse
	case errors.Is(err, tree.ErrTooDeep):
		return backends.Invalid
	}
	return failure.OfSystem(err)
}
