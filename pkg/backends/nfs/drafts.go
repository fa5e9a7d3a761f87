package nfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// sighting is the appearance of an entry in staging, and since when this process has seen it, by its own clock.
type sighting struct {
	as    string
	since time.Time
}

// drafts removes the remains of dead attempts from staging, and reports whether an attempt may be alive. An attempt
// without a token is dead, and a token that was not touched for long is removed. If its controller was only asleep, it
// can no longer publish. If there are too many names, only those that were read are checked.
func (j *janitors) drafts(s *share.Share, h *share.Home) (alive bool, err error) {
	names, flooded := h.Names(share.Staging, "")
	switch {
	case flooded == nil:
		j.forgetBut(s, names)
	case !errors.Is(flooded, share.ErrFlooded):
		return false, flooded
	}
	kept := map[string]bool{} // IDs of items that this version of the driver may not judge
	begun, err := h.Names(share.Making, suffix)
	err = errors.Join(flooded, err)
	for _, name := range begun {
		_, id, _ := strings.Cut(name, "-")
		kept[id] = true
	}
	for key, names := range pieces(names) {
		id, _, isKey := strings.Cut(key, "-")
		lives, failed := false, error(nil)
		switch {
		case kept[id]:
		case isKey:
			lives, failed = j.draft(s, h, key, names)
		default:
			lives, failed = j.stray(s, h, names)
		}
		alive, err = alive || lives, errors.Join(err, failed)
	}
	return alive, err
}

// draft removes what is in staging of one attempt, if that is dead.
func (j *janitors) draft(s *share.Share, h *share.Home, key string, names []string) (alive bool, err error) {
	token, err := readSurely(h, share.Staging, key+suffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, j.leave(s, key, err)
	}
	if r, err := j.engine.publishedAs(h, key); err != nil {
		return false, j.leave(s, key, err)
	} else if r != nil {
		err := j.engine.putInPlace(s, h, r)
		if backends.Is(err, backends.Invalid) {
			err = j.leave(s, key, err)
		}
		return false, errors.Join(err, h.Remove(share.Staging, key+suffix))
	}
	if _, err := readSurely(h, share.Trash, key+suffix); !errors.Is(err, fs.ErrNotExist) {
		return false, nil // It is removed from there.
	}
	if token != nil {
		if alive, err := j.unchanged(s, h, key+suffix); alive || err != nil {
			return alive, err
		}
		j.engine.giveUp(s, h, token)
		return true, nil // It may have been published just before: the next round knows.
	}
	half := slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return !strings.HasPrefix(name, key+suffix+".") })
	if len(half) == len(names) { // A token that is being written.
		return j.stray(s, h, names)
	}
	boxes := slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return !strings.HasPrefix(name, key+boxSuffix) })
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(boxes, name) })
	alive, err = j.stray(s, h, boxes) // A process may be dropping the claim just now.
	return alive, errors.Join(err, j.remove(s, names))
}

// leave logs that a draft is left alone, for example because its record cannot be read, or is of a newer version of the
// driver.
func (j *janitors) leave(s *share.Share, key string, why error) error {
	if j.life.Err() == nil {
		j.engine.log.Warn("a draft is left alone", "share", s.Address.String(), "draft", share.At(share.Staging, key),
			"error", why)
	}
	return nil
}

// publishedAs returns the record that an attempt has published; nil if it has not published. Kinds: as everywhere.
func (e *engine) publishedAs(h *share.Home, key string) (*record, error) {
	id, turn, _ := strings.Cut(key, "-")
	for _, k := range []kind{volumeKind, snapshotKind, groupKind} {
		r, err := e.everywhere(h, k, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case r.Turn == turn:
			return r, nil
		}
	}
	return nil, nil // It is no failure that it was not published.
}

// stray removes files of no attempt, such as a partly written one, once they were not touched for long.
func (j *janitors) stray(s *share.Share, h *share.Home, names []string) (alive bool, err error) {
	for _, name := range names {
		lives, err := j.unchanged(s, h, name)
		if err == nil && !lives {
			err = j.remove(s, []string{name})
		}
		if err != nil {
			return false, err
		}
		alive = alive || lives
	}
	return alive, nil
}

// unchanged reports whether an entry in staging may be alive: its appearance has changed within the patience, by our
// own clock.
func (j *janitors) unchanged(s *share.Share, h *share.Home, name string) (alive bool, err error) {
	info, err := h.Look(share.Staging, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	as, where := appearance(info), s.Address.String()+" "+name
	j.mu.Lock()
	defer j.mu.Unlock()
	if last, ok := j.seen[where]; !ok || last.as != as {
		j.seen[where] = sighting{as, time.Now()}
		return true, nil
	}
	if time.Since(j.seen[where].since) < j.engine.copies.pace.patience {
		return true, nil
	}
	delete(j.seen, where)
	return false, nil
}

// appearance returns the attributes of an entry in staging that change whenever a process works on it.
func appearance(stat unix.Statx_t) string {
	return fmt.Sprint(stat.Mtime.Sec, stat.Mtime.Nsec, stat.Size)
}

// forgetBut forgets the sightings of entries that are no longer in staging.
func (j *janitors) forgetBut(s *share.Share, names []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	on := s.Address.String() + " "
	still := make(map[string]bool, len(names))
	for _, name := range names {
		still[name] = true
	}
	maps.DeleteFunc(j.seen, func(where string, _ sighting) bool {
		name, here := strings.CutPrefix(where, on)
		return here && !still[name]
	})
}

// remove removes names from staging.
func (j *janitors) remove(s *share.Share, names []string) error {
	for _, name := range names {
		if err := removeIn(j.life, s, share.Staging, name); err != nil {
			return err
		}
	}
	return nil
}
