package nfs

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// trash empties the trash. If the folder has too many names, it removes those that were read, which makes room for the
// others.
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
			misplaced = looks.timed(func() error { return j.lay(h) }) // which reports everything that the previous one did
		}
		if failed := j.empty(s, h, key, names, all); failed != nil {
			err = errors.Join(err, failed)
		}
		if errors.Is(err, unix.ETIMEDOUT) {
			break // The others would each take as long to fail. The next round mounts the share anew.
		}
	}
	return errors.Join(misplaced, err)
}

// relook says when the whole trash must be laid again during a removal, which may take hours. An earlier version of the
// driver, which has no burials, can move records there at any time, and one may say that data must be kept. A look
// takes longer the more is in the trash. Looks take at most a tenth of the time.
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

// pieces groups names by the key of their item. A deep tree is removed in pieces, beside the first: key.1, key.2 and so
// on.
func pieces(names []string) map[string][]string {
	all := map[string][]string{}
	for _, name := range names {
		key, _, _ := strings.Cut(name, ".")
		all[key] = append(all[key], name)
	}
	return all
}

// empty removes one item in the trash. If these are all of its pieces, it removes the record that requests this last.
func (j *janitors) empty(s *share.Share, h *share.Home, key string, pieces []string, all bool) error {
	pieces, err := j.endings(h, key, pieces)
	if err != nil {
		return err
	}
	if all && !slices.Contains(pieces, key+suffix) {
		return nil // No record requests its removal.
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
		return nil // The next look finds it, if it exists: its removal was not finished yet.
	} else if err != nil {
		return err
	}
	unseen, err := exists(s.Dir(), share.At(share.Trash, key)) // It was never in its place, if its directory stays there.
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

// endings continues with records that a janitor was about to remove, and returns the other pieces.
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

// emptyOf removes the pieces of one item in the trash, but not its record.
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

// removeIn removes an entry of a folder of the home. No link leads it outside.
func removeIn(ctx context.Context, s *share.Share, folder, name string) error {
	dir, err := s.Files().Folder(share.At(folder, ""))
	if err != nil {
		return ignoreGone(err)
	}
	defer closeQuietly(dir)
	return tree.RemoveIn(ctx, dir, name)
}
