package nfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// layOf is lay for all records that were moved away and are of things with the ID, or were taken for such. They are
// among the burials, where there are few, and not in the trash, where there may be very many: but an earlier version of
// the driver had no burials. Kinds: as lay.
func (e *engine) layOf(h *share.Home, id string) error {
	if !e.laid.of(h, id) {
		return layEverywhere(h, id)
	}
	all, err := movedTo(h, share.Burials, id)
	if errors.Is(err, fs.ErrNotExist) { // Somebody has removed it, or the server exports something else.
		return layEverywhere(h, id)
	}
	if err != nil {
		return err
	}
	return orReplaced(layAll(h, all))
}

// layEverywhere is layOf in the burials and in the trash. Kinds: as layOf; Unavailable where there is no trash.
func layEverywhere(h *share.Home, id string) error {
	all, err := movedTo(h, share.Burials, id)
	if ignoreGone(err) != nil {
		return err
	}
	trash, err := movedTo(h, share.Trash, id)
	if errors.Is(err, fs.ErrNotExist) { // which says nothing about a record
		return backends.Errorf(backends.Unavailable, "there is no folder %s: does the server export something else?",
			share.At(share.Trash, ""))
	}
	if err != nil {
		return err
	}
	return orReplaced(layAll(h, append(all, trash...)))
}

// orReplaced is the failure of who has looked for a record that was moved away. Kinds: Busy where one was put back.
func orReplaced(back bool, left unlaid) error {
	if len(left) == 0 && back {
		return backends.Errorf(backends.Busy, "%w", errReplaced)
	}
	return left.failure()
}

// movedTo are the records in a folder whose names begin with the ID.
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

// lay puts back what is no trash, before anything is removed, which may take long. What was just buried gets its usual
// name in the trash.
func (j *janitors) lay(h *share.Home) error {
	burials, err := layIn(h, share.Burials)
	if errors.Is(err, fs.ErrNotExist) {
		if err = h.MakeFolder(share.Burials); failure.IsAny(err, unix.ENOSPC, unix.EDQUOT, unix.EROFS) {
			trash, err := layIn(h, share.Trash) // What is buried gets there as long as there is no room.
			return errors.Join(trash.failure(), err)
		}
	}
	trash, failed := layIn(h, share.Trash)
	if err = errors.Join(err, failed); err == nil {
		j.engine.laid.note(h, trash.ids())
	}
	return errors.Join(burials.failure(), trash.failure(), err)
}

// layIn lays all that is in a folder. It fails where that cannot be listed.
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
