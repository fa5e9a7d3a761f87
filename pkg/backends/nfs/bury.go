package nfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// bury moves the record of something by way of the burials to the trash, by which it is gone. NFS moves whatever has
// the name by now: if that is another thing's record, because this one was deleted and made anew meanwhile, it is put
// back. Kinds: Busy then.
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

// errNotThere says that nobody may go on with a removal now: another controller's janitor has finished it, or somebody
// has the record aside for a moment.
var errNotThere = errors.New("its record is not in the trash now")

// buryAgain moves the record of a volume that is in the trash there again, as long as changes that were under way bring
// it back, and is what it says then: that was acknowledged last, and decides what becomes of the data. It fails with
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

// end removes the record of what was removed, or keeps it with those of retained volumes, if that was in its place. A
// controller that was stopped before may move another record to its name at any time: so it gets a name of its own
// first, and is looked at there. One that an unfenced change has brought back among the volumes meanwhile is buried
// once more: it decides then.
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
	// Whoever finds the volume there would find it without its data, and nothing would remove it again.
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
