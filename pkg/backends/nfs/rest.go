package nfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// layToRest gives a burial its usual name in the trash, unless a record of the same thing has that which was written
// later, and so has what was acknowledged last. A link replaces nothing: what somebody else has just put there is
// looked at first. Kinds: Busy where others always are faster.
func layToRest(h *share.Home, b, usual buried) error {
	for range mostLooks {
		if err := lay(h, usual); err != nil { // It may be another thing's.
			return err
		}
		err := h.PutBack(b.folder, b.name, usual.folder, usual.name)
		full := failure.IsAny(err, unix.ENOSPC, unix.EDQUOT) // There is no room for a link, and none is needed to move it.
		switch {
		case err == nil:
			return h.Remove(b.folder, b.name)
		case errors.Is(err, fs.ErrNotExist):
			return nil // Another was faster.
		case !full && !errors.Is(err, fs.ErrExist):
			return err
		}
		later, err := isLater(h, usual, b)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !full: // It is gone by now.
			continue
		case ignoreGone(err) != nil:
			return err
		case later:
			return h.Remove(b.folder, b.name)
		}
		// Of two names of one file, which an earlier look has left, a server moves none: so it is removed besides.
		return errors.Join(ignoreGone(h.Move(b.folder, b.name, usual.folder, usual.name)), h.Remove(b.folder, b.name))
	}
	return backends.Errorf(backends.Busy, "%w", errReplaced)
}

// isLater reports whether a record was written later than another. It fails with fs.ErrNotExist where one is gone.
func isLater(h *share.Home, one, other buried) (bool, error) {
	first, err := h.Written(one.folder, one.name)
	if err != nil {
		return false, err
	}
	second, err := h.Written(other.folder, other.name)
	return unix.TimespecToNsec(first) > unix.TimespecToNsec(second), err
}
