package nfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// box is a directory in staging for what a process takes from a place: the directory of a deleted volume, and claims.
// The process creates a box, removes all other boxes for the same holder, checks the place's owner, and then moves. So
// a process that was stopped between checking and moving has no box any more after another has checked, and moves
// nothing: by then the place may be another volume's.
type box struct{ path string }

const (
	// boxSuffix follows the holder in the name of a box, and a number follows it.
	boxSuffix = ".box-"
	// The names in a box.
	boxedData  = "data"
	boxedClaim = "claim"
)

// newBox creates the only box for a holder. Contents of other boxes go to unpack. On a full share there is no box,
// because freeing must not need to write.
func newBox(s *share.Share, h *share.Home, holder string, unpack func(box) error) (own box, err error) {
	name := holder + boxSuffix + share.Random()
	own = box{share.At(share.Staging, name)}
	if err := s.Files().Mkdir(own.path, 0o700); failure.IsAny(err, unix.ENOSPC, unix.EDQUOT) {
		return box{}, nil
	} else if err != nil {
		return own, err
	}
	if err := h.Refresh(share.Staging); err != nil {
		return own, err
	}
	names, err := h.NamesOf(share.Staging, holder+boxSuffix, "")
	if err != nil {
		return own, err
	}
	for _, other := range names {
		if other != name {
			left := box{share.At(share.Staging, other)}
			if err := errors.Join(unpack(left), ignoreGone(left.remove(s))); err != nil {
				return own, err
			}
		}
	}
	return own, h.Refresh(share.Claims)
}

// remove removes a box. Contents other than a claim keep the box. It is an error if the box is gone: another process
// has taken over, and may not be finished. Kinds: Busy then.
func (b box) remove(s *share.Share) error {
	if b.path == "" {
		return nil
	}
	if err := ignoreGone(s.Files().Remove(path.Join(b.path, boxedClaim))); err != nil {
		return err
	}
	err := s.Files().Remove(b.path)
	if errors.Is(err, fs.ErrNotExist) || failure.IsAny(err, unix.ENOTEMPTY, unix.EEXIST) {
		return backends.Errorf(backends.Busy, "what is taken away, another may be taking: ask again: %w", err)
	}
	return err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// target returns where a taken directory goes: without a box, directly to its final place.
func (b box) target(name, otherwise string) string {
	if b.path == "" {
		return otherwise
	}
	return path.Join(b.path, name)
}

// unclaim drops a claim of a holder, unless it is another's by now.
func (b box) unclaim(s *share.Share, h *share.Home, name, holder string) error {
	now, err := h.Claimed(name)
	if err != nil || now != holder {
		return err
	}
	if b.path == "" {
		return h.Remove(share.Claims, name)
	}
	return ignoreGone(s.Files().Rename(share.At(share.Claims, name), path.Join(b.path, boxedClaim)))
}

// vacate deletes, archives or keeps the directory of a deleted volume as its record says, and releases its place.
func (e *engine) vacate(s *share.Share, h *share.Home, r *record) (err error) {
	own, err := newBox(s, h, r.key(), func(b box) error { return e.unpack(s, r, b) })
	defer func() { err = errors.Join(err, own.remove(s)) }()
	if err != nil {
		return err
	}
	holder, err := h.Claimed(claimOf(r.SubDir))
	if err != nil || holder != r.key() { // Another volume's by now, or nobody's.
		return err
	}
	if err := e.take(s, r, own); err != nil {
		return err
	}
	return own.unclaim(s, h, claimOf(r.SubDir), r.key())
}

// take takes a volume's directory from its place, unless that was done already: a directory there is not this volume's
// then.
func (e *engine) take(s *share.Share, r *record, own box) error {
	away, err := exists(s.Dir(), share.At(share.Trash, r.key()))
	if err != nil || away || r.OnDelete == retainData {
		return err
	}
	parent, err := safepath.OpenBeneath(s.Dir(), path.Dir(r.SubDir))
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeQuietly(parent)
	if there, err := exists(parent, r.archive()); err != nil || there {
		return err // An earlier call did it: no other item has the number.
	}
	otherwise := share.At(share.Trash, r.key())
	if r.OnDelete == archiveData {
		otherwise = path.Join(path.Dir(r.SubDir), r.archive())
	}
	if err := moveDir(parent, path.Base(r.SubDir), s.Dir(), own.target(boxedData, otherwise),
		r.OnDelete == archiveData); err != nil {
		return err
	}
	return e.unpack(s, r, own)
}

// archive returns the name of the directory of a volume that was deleted and is kept. A long name is cut to fit; the
// number makes it unique.
func (r *record) archive() string {
	const before, between = "archived-", "-"
	name := path.Base(r.SubDir)
	if most := unix.NAME_MAX - len(before) - len(between) - len(r.Turn); len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") // The cut may split the last character.
	}
	return before + name + between + r.Turn
}

// unpack moves the directory of a volume from a box to the trash, or to the archive beside its place.
func (e *engine) unpack(s *share.Share, r *record, b box) error {
	full, err := exists(s.Dir(), path.Join(b.path, boxedData))
	if err != nil || !full || b.path == "" {
		return err
	}
	if r.OnDelete != archiveData {
		return moveAway(s.Dir(), path.Join(b.path, boxedData), s.Dir(), share.At(share.Trash, r.key()), false)
	}
	parent, err := safepath.OpenBeneath(s.Dir(), path.Dir(r.SubDir))
	if err != nil {
		return err
	}
	defer closeQuietly(parent)
	if err := moveAway(s.Dir(), path.Join(b.path, boxedData), parent, r.archive(), true); err != nil {
		return err
	}
	e.log.Info("a deleted volume is archived", "share", s.Address.String(), "directory",
		path.Join(path.Dir(r.SubDir), r.archive()))
	return nil
}

// unclaim drops the claim of a dead attempt: its directory was never in its place.
func unclaim(s *share.Share, h *share.Home, name, holder string) (err error) {
	own, err := newBox(s, h, holder, func(box) error { return nil })
	defer func() { err = errors.Join(err, own.remove(s)) }()
	if err != nil {
		return err
	}
	return own.unclaim(s, h, name, holder)
}
