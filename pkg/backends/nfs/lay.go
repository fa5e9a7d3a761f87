package nfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

const (
	// buriedMark is in the name of a record that somebody has just moved to the trash. Nobody else has the name, so that
	// the move replaces nothing there: who was stopped before it may move another thing's record than he meant. Earlier
	// versions of the driver leave what has such a name alone.
	buriedMark = ".buried-"
	// endedMark is in the name of a record in the trash that is about to be removed.
	endedMark = ".ended-"
)

// errReplaced says that something was deleted, and another made in its place.
var errReplaced = errors.New("it was deleted, and made anew: ask again")

// burialOf is a name for the record of the thing with the key, in the trash, that nobody has had.
func burialOf(key string) string {
	id, turn, _ := strings.Cut(key, "-")
	return id + buriedMark + turn + "-" + share.Random() + suffix
}

// buriedAs is the key of the thing that was to be deleted by who gave a record its name in the trash, and the mark in
// that name, if it has one; the key is empty for what is no record of a thing.
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

// layOf is lay for all records in the trash that are of things with the ID, or were taken for such. What cannot be read
// is left to the janitor, which says so. Kinds: as lay.
func layOf(h *share.Home, id string) error {
	var names []string
	err := h.Refresh(share.Trash)
	if err == nil {
		names, err = h.NamesOf(share.Trash, id, suffix)
	}
	if errors.Is(err, fs.ErrNotExist) { // which says nothing about a record
		return backends.Errorf(backends.Unavailable, "there is no folder %s: does the server export something else?",
			share.At(share.Trash, ""))
	}
	if err != nil {
		return err
	}
	return layAll(h, names, func(err error) bool { return backends.Is(err, backends.Unusable) })
}

// lookup reads the record of something, and fails with fs.ErrNotExist where there is none.
type lookup func(h *share.Home, k kind, id string) (*record, error)

// inPlace is a lookup for who may only look.
func inPlace(h *share.Home, k kind, id string) (*record, error) {
	return readSurely(h, k.folder(), id+suffix)
}

// anywhere is a lookup for who acts on there being no record: a late deletion may have moved it to the trash. Then it
// is put back. Kinds: Busy then.
func anywhere(h *share.Home, k kind, id string) (*record, error) {
	r, err := inPlace(h, k, id)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := layOf(h, id); err != nil {
		return nil, err
	}
	return read(h, k.folder(), id+suffix) // Another may have put it back meanwhile.
}

// layAll is lay for several names. Of the records of one thing, which changes have brought back in between, that comes
// last which was written last: it has what was acknowledged last.
func layAll(h *share.Home, names []string, tolerated func(error) bool) (failed error) {
	names, err := byAge(h, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := lay(h, name); err != nil && !tolerated(err) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// byAge has those of the names that lay does something with, the oldest burials first.
func byAge(h *share.Home, names []string) ([]string, error) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { key, _ := buriedAs(name); return key == "" })
	ages := map[string]int64{}
	for _, name := range names {
		if _, mark := buriedAs(name); mark != buriedMark {
			continue
		}
		written, err := h.Written(share.Trash, name)
		if ignoreGone(err) != nil {
			return nil, err
		}
		ages[name] = unix.TimespecToNsec(written)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(ages[a], ages[b]) })
	return names, nil
}

// lay looks whose a record in the trash is. One that was just moved there gets its usual name, if it is of what was to
// be deleted. What is another thing's was moved by somebody who had been stopped before, and is put back. Kinds: Busy
// then.
func lay(h *share.Home, name string) error {
	key, mark := buriedAs(name)
	r, err := read(h, share.Trash, name)
	switch {
	case err != nil:
		return ignoreGone(err) // Another was faster.
	case r.key() != key && mark == "":
		return layAside(h, name, key)
	case r.key() != key:
		return putBack(h, r, name)
	case mark == buriedMark:
		if err := lay(h, key+suffix); err != nil {
			return err
		}
		return ignoreGone(h.Move(share.Trash, name, share.Trash, key+suffix))
	}
	return nil
}

// layAside is lay for a record that an earlier version of the driver has moved to another's usual name. It gets a name
// of its own first: putting it back ends with removing the name, and that may be the right record's by then.
func layAside(h *share.Home, name, key string) error {
	own := burialOf(key)
	if err := h.Move(share.Trash, name, share.Trash, own); err != nil {
		return ignoreGone(err)
	}
	return lay(h, own)
}

// putBack gives a record that has a name in the trash its own name again. Kinds: Busy once that is done.
func putBack(h *share.Home, r *record, name string) error {
	err := h.PutBack(name, r.Kind.folder(), r.ID+suffix)
	if now, readErr := read(h, r.Kind.folder(), r.ID+suffix); errors.Is(err, fs.ErrExist) && readErr == nil &&
		now.Turn == r.Turn {
		err = nil // An earlier look has put it back.
	}
	if err == nil {
		err = h.Remove(share.Trash, name)
	}
	if ignoreGone(err) != nil { // Where it is gone, another has put it back.
		return fmt.Errorf("the record of %s is in the trash as %s and cannot be put back: %w", r.key(), name, err)
	}
	return backends.Errorf(backends.Busy, "%w", errReplaced)
}
