package nfs

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// trash removes all that is in the trash. Of a folder with too many names in it it removes those that it has: so there
// is room for the others.
func (j *janitors) trash(s *share.Share, h *share.Home) error {
	var looks relook
	misplaced := looks.timed(func() error { return j.lay(h) })
	names, err := h.Names(share.Trash, "")
	if err != nil && !errors.Is(err, share.ErrFlooded) {
		return errors.Join(misplaced, err)
	}
	all := err == nil
	found := pieces(names)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		names := found[key]
		if err := j.life.Err(); err != nil {
			return err
		}
		if looks.due(time.Now()) {
			misplaced = looks.timed(func() error { return j.lay(h) }) // which says all that the one before said
		}
		if failed := j.empty(s, h, key, names, all); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(misplaced, err)
}

// relook says when all that is in the trash is to be laid again, in the middle of a removal that may take hours: an
// earlier version of the driver, which has no burials, moves records there at any time, and one may say that data is to
// be kept. A look takes as long as there is much in the trash, and may take a tenth of the time.
type relook struct{ next time.Time }

func (l *relook) due(now time.Time) bool { return now.After(l.next) }

// timed does a look, and plans the next.
func (l *relook) timed(look func() error) error {
	begun := time.Now()
	err := look()
	ended := time.Now()
	l.next = ended.Add(max(time.Second, 9*ended.Sub(begun)))
	return err
}

// pieces are names by the key of the thing to which they belong. A deep tree is removed in pieces, beside the first:
// key.1, key.2 and so on.
func pieces(names []string) map[string][]string {
	all := map[string][]string{}
	for _, name := range names {
		key, _, _ := strings.Cut(name, ".")
		all[key] = append(all[key], name)
	}
	return all
}

// empty removes one thing that is in the trash, and last, if these are all of its pieces, the record that says so.
func (j *janitors) empty(s *share.Share, h *share.Home, key string, pieces []string, all bool) error {
	pieces, err := j.endings(h, key, pieces)
	if err != nil {
		return err
	}
	if all && !slices.Contains(pieces, key+suffix) {
		return nil // Nobody has said that this is to be removed.
	}
	r, err := read(h, share.Trash, key+suffix)
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.key() != key {
		return nil // Another controller's janitor was faster, or it is no trash: the next round puts it back.
	}
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := j.engine.dispose(s, h, r); errors.Is(err, errNotThere) {
		return nil // The next look finds it, if it is anywhere: what it says was not done yet.
	} else if err != nil {
		return err
	}
	unseen, err := exists(s.Dir(), share.At(share.Trash, key)) // It never was in its place, if its directory stays there.
	if err != nil {
		return err
	}
	for _, p := range r.parts() { // dispose has just moved them there
		pieces = append(pieces, p.draft)
	}
	if err := j.emptyOf(s, key, pieces); err != nil || !all {
		return err
	}
	if took := time.Since(begin); took > time.Second {
		j.engine.log.Info("removed what was deleted", "share", s.Address.String(), "directory", r.SubDir, "took", took)
	}
	return j.engine.end(h, key, !unseen)
}

// endings goes on with records that a janitor was about to remove, and returns the other pieces.
func (j *janitors) endings(h *share.Home, key string, pieces []string) (others []string, err error) {
	for _, name := range pieces {
		if !strings.HasPrefix(name, key+endedMark) {
			others = append(others, name)
			continue
		}
		err = errors.Join(err, ignoreGone(j.engine.endAs(h, key, name, true)))
	}
	return others, err
}

// emptyOf removes the pieces of one thing that is in the trash, but not its record.
func (j *janitors) emptyOf(s *share.Share, key string, pieces []string) error {
	for _, name := range pieces {
		if name == key+suffix {
			continue
		}
		if err := removeIn(j.life, s, share.Trash, name); err != nil {
			return err
		}
	}
	return nil
}

// removeIn removes what has a name in a folder of the home. No link leads it out of there.
func removeIn(ctx context.Context, s *share.Share, folder, name string) error {
	dir, err := s.Files().Folder(share.At(folder, ""))
	if err != nil {
		return ignoreGone(err)
	}
	defer closeQuietly(dir)
	return tree.RemoveIn(ctx, dir, name)
}
