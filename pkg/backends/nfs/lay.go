package nfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// errReplaced says that an item was deleted, and another created in its place.
var errReplaced = errors.New("it was deleted, and made anew: ask again")

// layAll is lay for several records. It reports whether one was put back, and which could not be laid.
func layAll(h *share.Home, all []buried) (back bool, left unlaid) {
	left = unlaid{}
	for _, b := range all {
		if err := lay(h, b); errors.Is(err, errReplaced) {
			back = true
		} else if err != nil {
			key, _ := buriedAs(b.name)
			id, _, _ := strings.Cut(key, "-")
			left.add(id, err)
		}
	}
	return back, left
}

// lay determines the owner of a record that was moved away. A record that was just buried gets its usual name in the
// trash, if it is the one that was to be deleted. Any other record was moved by a controller that had been stopped
// before, and is put back. Kinds: Busy then.
func lay(h *share.Home, b buried) error {
	key, mark := buriedAs(b.name)
	if key == "" {
		return nil
	}
	r, err := read(h, b.folder, b.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // Another controller was faster.
	case err != nil:
		return unread(b, err)
	case r.key() != key && mark == "":
		return layAside(h, b, key)
	case r.key() != key:
		return putBack(h, r, b)
	case mark == buriedMark:
		return layToRest(h, b, buried{share.Trash, key + suffix})
	}
	return nil
}

// unread returns the failure for a record that was moved away and cannot be read: its owner is unknown. Kinds:
// Unavailable for one that is damaged.
func unread(b buried, err error) error {
	if !backends.Is(err, backends.Unusable) {
		return err
	}
	return backends.Errorf(backends.Unavailable,
		"%s may be the record of what is asked for: make it readable again, or remove it if what it is of may be forgotten: "+
			"%w", share.At(b.folder, b.name), err)
}

// layAside is lay for a record that an earlier version of the driver has moved to another item's usual name. It gets
// its own name first: putting it back ends with removing the name, which may be that of the right record by then.
func layAside(h *share.Home, b buried, key string) error {
	own := burialOf(key)
	folder, err := h.Bury(b.folder, b.name, own)
	if err != nil {
		return ignoreGone(err)
	}
	return lay(h, buried{folder, own})
}

// putBack gives a record that was moved away its own name again. Kinds: Busy once that is done.
func putBack(h *share.Home, r *record, b buried) error {
	err := h.PutBack(b.folder, b.name, r.Kind.folder(), r.ID+suffix)
	if now, readErr := read(h, r.Kind.folder(), r.ID+suffix); errors.Is(err, fs.ErrExist) && readErr == nil &&
		now.Turn == r.Turn {
		err = nil // An earlier look has put it back.
	}
	if err == nil {
		err = h.Remove(b.folder, b.name)
	}
	if ignoreGone(err) != nil { // If it is gone, another controller has put it back.
		return fmt.Errorf("the record of %s was moved to %s and cannot be put back: %w", r.key(),
			share.At(b.folder, b.name), err)
	}
	return backends.Errorf(backends.Busy, "%w", errReplaced)
}
