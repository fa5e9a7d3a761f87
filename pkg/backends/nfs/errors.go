package nfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// annotate completes the error of an operation. Each exported method of controllerSide and nodeSide that can fail
// defers it, so that inner errors are plain and wrapped.
func annotate(err *error, op, subject string) {
	if *err != nil {
		*err = failure.Of(classify(*err), op, subject, advised(*err))
	}
}

// advised adds advice for a server that refuses root.
func advised(err error) error {
	if classify(err) == backends.Denied && failure.IsAny(err, unix.EPERM) && !errors.Is(err, tree.ErrOwner) {
		return fmt.Errorf("%w: the server lets nobody do that: is the file or its directory immutable or append-only "+
			"there? Look with lsattr on the server, and allow it with chattr -i -a", err)
	}
	if classify(err) != backends.Denied || !failure.IsAny(err, unix.EACCES) && !errors.Is(err, tree.ErrOwner) {
		return err
	}
	return fmt.Errorf("%w: does the server make nobody of this machine's root (root_squash)? Export the share with "+
		"no_root_squash to where the controller runs", err)
}

// classify returns the Kind of an error: its own, or the one that its cause implies.
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
	}
	if kind := failure.OfSystem(err); kind != backends.Unknown {
		return kind
	}
	return backends.Unavailable // A server that fails or restarts may recover.
}
