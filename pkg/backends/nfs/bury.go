package nfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// bury moves the record of something to the trash, by which it is gone. NFS moves whatever has the name by now: if that
// is another thing's record, because this one was deleted and made anew meanwhile, it is put back. Kinds: Busy then.
func (e *engine) bury(s *share.Share, h *share.Home, r *record) error {
	if err := h.Move(r.Kind.folder(), r.ID+suffix, share.Trash, r.key()+suffix); err != nil {
		return fmt.Errorf("its record cannot be moved to the trash: %w", err)
	}
	_, err := e.buried(h, r.key())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Another controller's janitor has finished already.
	}
	if err != nil {
		e.janitors.add(s.Address)
	}
	return err
}

// buryAgain moves the record of a volume that is in the trash there again, as long as changes that were under way bring
// it back, and is what it says then: that was acknowledged last, and decides what becomes of the data. It is nil when
// another controller's janitor has finished already.
func (e *engine) buryAgain(s *share.Share, h *share.Home, r *record) (*record, error) {
	for {
		if err := endChanges(h, r.ID, ""); err != nil {
			return nil, err
		}
		now, err := read(h, r.Kind.folder(), r.ID+suffix)
		if errors.Is(err, fs.ErrNotExist) || err == nil && now.Turn != r.Turn {
			break
		}
		if err == nil {
			err = e.bury(s, h, r)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := h.Refresh(share.Trash); err != nil {
		return nil, err
	}
	last, err := e.buried(h, r.key())
	return last, ignoreGone(err)
}

// errReplaced says that something was deleted, and another made in its place.
var errReplaced = errors.New("it was deleted, and made anew: ask again")

// buried reads a record in the trash. Its name there says what was to be deleted. What has another number was moved by
// somebody who had been stopped before, and is put back. Kinds: Busy then.
func (e *engine) buried(h *share.Home, key string) (*record, error) {
	r, err := read(h, share.Trash, key+suffix)
	if err != nil || r.key() == key {
		return r, err
	}
	return nil, e.putBack(h, r, key+suffix)
}

// putBack gives a record that has a name in the trash its own name again. Kinds: Busy once that is done.
func (e *engine) putBack(h *share.Home, r *record, name string) error {
	err := h.PutBack(name, r.Kind.folder(), r.ID+suffix)
	if now, readErr := read(h, r.Kind.folder(), r.ID+suffix); errors.Is(err, fs.ErrExist) && readErr == nil &&
		now.Turn == r.Turn {
		err = nil // An earlier look has put it back.
	}
	if err == nil {
		err = h.Remove(share.Trash, name)
	}
	if err != nil {
		return fmt.Errorf("the record of %s is in the trash as %s and cannot be put back: %w", r.key(), name, err)
	}
	return backends.Errorf(backends.Busy, "%w", errReplaced)
}

// endedMark is in the name of a record in the trash that is about to be removed.
const endedMark = ".ended-"

// end removes the record of what was removed, or keeps it with those of retained volumes, if that was in its place. A
// controller that was stopped before may move another record to its name at any time: so it gets a name of its own
// first, and is looked at there.
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
		err = e.putBack(h, r, name)
		if errors.Is(err, errReplaced) {
			return nil
		}
		return err
	case placed && r.retained():
		return h.Move(share.Trash, name, share.Retained, key+suffix)
	}
	return h.Remove(share.Trash, name)
}
