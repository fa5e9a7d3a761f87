package nfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// layToRest gives a burial its usual name in the trash, unless that name has a record of the same item that was written
// no earlier, and thus was acknowledged last. Kinds: Busy where others always are faster.
func layToRest(h *share.Home, b, usual buried) error {
	aside, err := rest(h, b, usual)
	for _, other := range aside { // The burial has the usual name, or another was faster: now these are ordinary burials.
		err = errors.Join(err, lay(h, other))
	}
	return err
}

// rest is layToRest without laying the records that it has moved aside. Nothing is moved over a record with the usual
// name, which may be younger than the one that was read. A link replaces nothing, and an older record is moved out of
// the way, to the burials. A controller that is stopped after that leaves two burials, and no look loses the younger
// one.
func rest(h *share.Home, b, usual buried) (aside []buried, err error) {
	for range mostLooks {
		if err := seenAnew(h, usual); err != nil {
			return aside, err
		}
		err := h.PutBack(b.folder, b.name, usual.folder, usual.name)
		full := failure.IsAny(err, unix.ENOSPC, unix.EDQUOT)
		switch {
		case err == nil:
			return aside, h.Remove(b.folder, b.name)
		case errors.Is(err, fs.ErrNotExist):
			return aside, nil // Another was faster.
		case !full && !errors.Is(err, fs.ErrExist):
			return aside, err
		}
		last, err := outlasts(h, usual, b)
		switch {
		case errors.Is(err, fs.ErrNotExist) && full: // There is no room for a link, but a move needs none.
			return aside, ignoreGone(h.Move(b.folder, b.name, usual.folder, usual.name))
		case errors.Is(err, fs.ErrNotExist): // One of them is gone by now.
			continue
		case err != nil:
			return aside, err
		case last:
			return aside, h.Remove(b.folder, b.name)
		}
		key, _ := buriedAs(usual.name)
		own := burialOf(key)
		folder, err := h.Bury(usual.folder, usual.name, own)
		if err == nil {
			aside = append(aside, buried{folder, own})
		} else if ignoreGone(err) != nil {
			return aside, err
		}
	}
	return aside, backends.Errorf(backends.Busy, "others always sort the records of %s first: ask again", usual.name)
}

// seenAnew looks at the record with the usual name, bypassing the client's cache. If it is another item's, it is put
// back. Kinds: Unavailable where there is no folder for it; Busy as lay.
func seenAnew(h *share.Home, usual buried) error {
	if err := hasFolder(h, usual.folder); err != nil {
		return err
	}
	return lay(h, usual)
}

// outlasts reports whether a record stays in place of a burial of the same item: it is no earlier, or is the same file,
// to which an earlier look has given two names. It fails with fs.ErrNotExist where one is gone. Each is read before its
// attributes, because opening it by name makes the client look the file up again.
func outlasts(h *share.Home, usual, b buried) (bool, error) {
	stays, err := read(h, usual.folder, usual.name)
	if err != nil {
		return false, err
	}
	comes, err := read(h, b.folder, b.name)
	if err != nil {
		return false, err
	}
	one, err := h.Written(usual.folder, usual.name)
	if err != nil {
		return false, err
	}
	other, err := h.Written(b.folder, b.name)
	switch {
	case err != nil:
		return false, err
	case one.Same(other):
		return true, nil
	case stays.key() != comes.key(): // Another item's record is put back from the burials.
		return false, nil
	case stays.Revision != comes.Revision && min(stays.Revision, comes.Revision) > 0:
		return stays.Revision > comes.Revision, nil
	}
	return one.Nanoseconds >= other.Nanoseconds, nil
}
