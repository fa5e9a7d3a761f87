package nfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// bury moves the record of an item by way of the burials to the trash, and then the item is gone. NFS moves whichever
// file has the name by now. If that is another item's record, because this item was deleted and another created
// meanwhile, it is put back. Kinds: Busy then.
func (e *engine) bury(h *share.Home, r *record) error {
	name := burialOf(r.key())
	folder, err := h.Bury(r.Kind.folder(), r.ID+suffix, name)
	if err != nil {
		return fmt.Errorf("its record cannot be moved to the trash: %w", err)
	}
	if err = lay(h, buried{folder, name}); err != nil {
		e.janitors.add(h.Address())
	}
	return err
}

// errNotThere says that the removal cannot continue now: another controller's janitor has finished it, or a look has
// moved the record aside for a moment.
var errNotThere = errors.New("its record is not in the trash now")

// buryAgain moves the record of a volume in the trash there again, as long as concurrent changes bring it back, and
// returns its last version. That version was acknowledged last, and decides what happens to the data. It fails with
// errNotThere when the record is not in the trash.
func (e *engine) buryAgain(h *share.Home, r *record) (*record, error) {
	for {
		if err := endChanges(h, r.ID, ""); err != nil {
			return nil, err
		}
		now, err := read(h, r.Kind.folder(), r.ID+suffix)
		if errors.Is(err, fs.ErrNotExist) || err == nil && now.Turn != r.Turn {
			break
		}
		if err == nil {
			err = e.bury(h, r)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := e.layOf(h, r.ID); err != nil {
		return nil, err
	}
	last, err := read(h, share.Trash, r.key()+suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotThere
	case err == nil && last.key() != r.key():
		return nil, backends.Errorf(backends.Busy, "%w", errReplaced)
	}
	return last, err
}

// end removes the record of a removed item. The record of a retained volume that was in its place moves to the retained
// ones. A controller that was stopped before may move another record to the usual name at any time, so the record gets
// a unique name first and is checked there. A record that an unfenced change has brought back among the volumes
// meanwhile is buried once more: it decides then.
func (e *engine) end(h *share.Home, key string, placed bool) error {
	name := key + endedMark + rand.Text() + suffix
	if err := h.Move(share.Trash, key+suffix, share.Trash, name); err != nil {
		return ignoreGone(err) // Another controller's janitor was faster.
	}
	return e.endAs(h, key, name, placed)
}

func (e *engine) endAs(h *share.Home, key, name string, placed bool) error {
	r, err := read(h, share.Trash, name)
	switch {
	case err != nil:
		return ignoreGone(err)
	case r.key() != key:
		err = putBack(h, r, buried{share.Trash, name})
		if errors.Is(err, errReplaced) {
			return nil
		}
		return err
	}
	// A caller that finds the volume there would find it without its data, and the volume would never be removed.
	now, err := read(h, r.Kind.folder(), r.ID+suffix)
	if err == nil && now.Turn == r.Turn {
		err = e.bury(h, now)
		e.janitors.add(h.Address())
	}
	switch {
	case ignoreGone(err) != nil:
		return err
	case placed && r.retained():
		return h.Move(share.Trash, name, share.Retained, key+suffix)
	}
	return h.Remove(share.Trash, name)
}
