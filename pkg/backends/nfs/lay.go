package nfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

const (
	// buriedMark is in the name of a record that somebody has just moved away to delete what it is of. Nobody else has
	// the name, so that the move replaces nothing: who was stopped before it may move another thing's record than he
	// meant. Versions of the driver without burials leave what has such a name in the trash alone.
	buriedMark = ".buried-"
	// endedMark is in the name of a record in the trash that is about to be removed.
	endedMark = ".ended-"
)

// buried is a record in the burials, or in the trash: its folder, and its name there.
type buried struct{ folder, name string }

// errReplaced says that something was deleted, and another made in its place.
var errReplaced = errors.New("it was deleted, and made anew: ask again")

// burialOf is a name for the record of the thing with the key, among the burials, that nobody has had.
func burialOf(key string) string {
	id, turn, _ := strings.Cut(key, "-")
	return id + buriedMark + turn + "-" + share.Random() + suffix
}

// buriedAs is the key of the thing that was to be deleted by who gave a record its name there, and the mark in that
// name, if it has one; the key is empty for what is no record of a thing.
func buriedAs(name string) (key, mark string) {
	base, isRecord := strings.CutSuffix(name, suffix)
	if !isRecord {
		return "", ""
	}
	key = base
	if id, rest, ok := strings.Cut(base, buriedMark); ok {
		turn, _, _ := strings.Cut(rest, "-")
		key, mark = id+"-"+turn, buriedMark
	} else if ended, _, ok := strings.Cut(base, endedMark); ok {
		key, mark = ended, endedMark
	}
	if id, turn, _ := strings.Cut(key, "-"); !isHex(id, 32) || !isHex(turn, 16) {
		return "", ""
	}
	return key, mark
}

// lookup reads the record of something, and fails with fs.ErrNotExist where there is none.
type lookup func(h *share.Home, k kind, id string) (*record, error)

// inPlace is a lookup for who may only look.
func inPlace(h *share.Home, k kind, id string) (*record, error) {
	return readSurely(h, k.folder(), id+suffix)
}

// anywhere is a lookup for who acts on there being no record: a late deletion may have moved it away. Then it is put
// back. Kinds: Busy then.
func (e *engine) anywhere(h *share.Home, k kind, id string) (*record, error) {
	return lookAgain(h, k, id, e.layOf)
}

// everywhere is anywhere for who takes something away where there is no record: it looks at the whole trash, whatever
// version of the driver has moved the record.
func everywhere(h *share.Home, k kind, id string) (*record, error) {
	return lookAgain(h, k, id, layEverywhere)
}

func lookAgain(h *share.Home, k kind, id string, lay func(h *share.Home, id string) error) (*record, error) {
	r, err := inPlace(h, k, id)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := lay(h, id); err != nil {
		return nil, err
	}
	return read(h, k.folder(), id+suffix) // Another may have put it back meanwhile.
}

// layAll is lay for several, and reports whether one was put back.
func layAll(h *share.Home, all []buried) (back bool, failed error) {
	for _, b := range all {
		if err := lay(h, b); errors.Is(err, errReplaced) {
			back = true
		} else {
			failed = errors.Join(failed, err)
		}
	}
	return back, failed
}

// lay looks whose a record is that was moved away. One that was just buried gets its usual name in the trash, if it is
// of what was to be deleted. What is another thing's was moved by somebody who had been stopped before, and is put
// back. Kinds: Busy then.
func lay(h *share.Home, b buried) error {
	key, mark := buriedAs(b.name)
	if key == "" {
		return nil
	}
	r, err := read(h, b.folder, b.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // Another was faster.
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

// unread is the failure of who cannot read a record that was moved away: nobody knows whose it is. Kinds: Unavailable
// for one that is damaged.
func unread(b buried, err error) error {
	if !backends.Is(err, backends.Unusable) {
		return err
	}
	return backends.Errorf(backends.Unavailable,
		"%s may be the record of what is asked for: make it readable again, or remove it if what it is of may be forgotten: "+
			"%w", share.At(b.folder, b.name), err)
}

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

// layAside is lay for a record that an earlier version of the driver has moved to another's usual name. It gets a name
// of its own first: putting it back ends with removing the name, and that may be the right record's by then.
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
	if ignoreGone(err) != nil { // Where it is gone, another has put it back.
		return fmt.Errorf("the record of %s was moved to %s and cannot be put back: %w", r.key(),
			share.At(b.folder, b.name), err)
	}
	return backends.Errorf(backends.Busy, "%w", errReplaced)
}
