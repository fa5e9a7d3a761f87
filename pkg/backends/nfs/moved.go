package nfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// layOf is lay for all records that were moved away and are of items with the ID, or were taken for such. They are
// among the burials, which are few, and not in the trash, which may be very large. But an earlier version of the driver
// had no burials. Kinds: as lay.
func (e *engine) layOf(h *share.Home, id string) error {
	if !e.laid.of(h, id) {
		return e.layEverywhere(h, id)
	}
	all, err := e.burialsOf(h, id)
	if err != nil {
		return err
	}
	return e.laidAll(h, all)
}

// layEverywhere is layOf in the burials and in the trash. Kinds: as layOf; Unavailable where there is no trash, which
// the janitor creates again.
func (e *engine) layEverywhere(h *share.Home, id string) error {
	all, err := e.burialsOf(h, id)
	if err != nil {
		return err
	}
	trash, err := movedTo(h, share.Trash, id)
	if errors.Is(err, fs.ErrNotExist) {
		e.janitors.add(h.Address())
		return missing(share.Trash)
	}
	if err != nil {
		return err
	}
	return e.laidAll(h, append(all, trash...))
}

// burialsOf returns the burials of items with the ID. A share of an earlier version of the driver has no folder for
// them. If this process has seen one, the janitor creates it again, if this is still the right share. Kinds:
// Unavailable then.
func (e *engine) burialsOf(h *share.Home, id string) ([]buried, error) {
	all, err := movedTo(h, share.Burials, id)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return all, err
	case e.laid.on(h):
		e.janitors.add(h.Address())
		return nil, missing(share.Burials)
	}
	return nil, nil
}

// laidAll is layAll for callers that look for a record. If some cannot be laid now, the janitor retries without waiting
// for the next call. Kinds: Busy where one was put back.
func (e *engine) laidAll(h *share.Home, all []buried) error {
	back, left := layAll(h, all)
	if len(left) > 0 {
		e.janitors.add(h.Address())
		return left.failure()
	}
	if back {
		return backends.Errorf(backends.Busy, "%w", errReplaced)
	}
	return nil
}

// movedTo returns the records in a folder whose names begin with the ID.
func movedTo(h *share.Home, folder, id string) ([]buried, error) {
	if err := h.Refresh(folder); err != nil {
		return nil, err
	}
	names, err := h.NamesOf(folder, id, suffix)
	all := make([]buried, 0, len(names))
	for _, name := range names {
		all = append(all, buried{folder, name})
	}
	return all, err
}

// lay puts back records that are no trash, before anything is removed, which may take long. Records that were just
// buried get their usual names in the trash.
func (j *janitors) lay(h *share.Home) error {
	made := makeFolders(h)
	full := failure.IsAny(made, unix.ENOSPC, unix.EDQUOT, unix.EROFS)
	if full { // As long as there is no room, buried records move to the trash at once.
		j.engine.laid.forget(h)
		made = nil
	}
	burials, err := layIn(h, share.Burials)
	if full {
		err = ignoreGone(err)
	}
	trash, failed := layIn(h, share.Trash)
	if err = errors.Join(made, err, failed); err == nil && !full {
		j.engine.laid.note(h, trash.ids())
	}
	return errors.Join(burials.failure(), trash.failure(), err)
}

// layIn lays all records in a folder. It fails if the folder cannot be listed.
func layIn(h *share.Home, folder string) (unlaid, error) {
	names, err := h.Names(folder, suffix)
	if err != nil {
		return nil, err
	}
	all := make([]buried, 0, len(names))
	for _, name := range names {
		all = append(all, buried{folder, name + suffix})
	}
	_, left := layAll(h, all)
	return left, nil
}
