package nfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Delete removes the volume. Its record goes into the trash first, by which the volume is gone; then its directory is
// taken out of sight, or renamed, or left, as the record says; what there is to remove is removed in the background.
//
// Kinds: NotFound; Busy.
func (e *controllerSide) Delete(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete volume", handle)
	return e.remove(ctx, volumeKind, handle)
}

func (e *engine) remove(ctx context.Context, k kind, text string) error {
	return e.changing(ctx, k, text, "deleting a "+string(k), func(_ context.Context, s *share.Share, h *share.Home, r *record) error {
		if r.Group != nil {
			return backends.Errorf(backends.InUse, "it belongs to the group snapshot %s: delete that", r.Group.Handle)
		}
		if e.copies.reads(append(r.memberIDs(), r.ID)...) {
			return backends.Errorf(backends.Busy, "it is being copied: ask again")
		}
		// What an earlier call is making yet must not come after the deletion.
		if err := e.fence(s, h, r.ID, ""); err != nil {
			return err
		}
		if err := h.Move(k.folder(), r.ID+suffix, share.Trash, r.key()+suffix); err != nil {
			return err
		}
		if err := e.dispose(s, h, r); err != nil {
			// It is gone for everybody; the janitor does the rest, whenever it can.
			e.log.Warn("the directory of what was deleted could not be taken away yet", "share", s.Address.String(), "directory", r.SubDir, "error", err)
		}
		e.janitors.add(s.Address)
		return nil
	})
}

// dispose takes the directory of what is in the trash from its place, and gives the place free. It may be called again.
func (e *engine) dispose(s *share.Share, h *share.Home, r *record) error {
	for _, p := range r.parts() { // What was not put in its place yet never will be.
		if err := moveAway(s.Dir(), share.At(share.Staging, p.draft), s.Dir(), share.At(share.Trash, p.draft)); err != nil {
			return err
		}
	}
	switch r.Kind {
	case snapshotKind:
		return toTrash(s, s.Dir(), share.At(share.Snapshots, r.key()), r)
	case groupKind:
		return e.disposeMembers(s, h, r)
	case volumeKind:
	}
	defer e.disposing.hold(r.key())()
	holder, err := h.Claimed(claimOf(r.SubDir))
	if err != nil || holder != r.key() { // Another volume's by now, or nobody's.
		return err
	}
	away, err := exists(s.Dir(), share.At(share.Trash, r.key()))
	if err != nil {
		return err
	}
	if !away { // Else what is at the place is not this volume's.
		if err := e.vacate(s, r); err != nil {
			return err
		}
	}
	return h.Unclaim(claimOf(r.SubDir), r.key())
}

// stripes are locks for what is taken away: a claim that was looked at must hold until the directory is moved, because
// afterwards the place may be another volume's.
type stripes [64]sync.Mutex

// hold takes the lock of a key.
func (s *stripes) hold(key string) (release func()) {
	lock := &s[(int(key[0])*31+int(key[1]))%len(s)]
	lock.Lock()
	return lock.Unlock
}

// vacate does with a volume's directory what its record says.
func (e *engine) vacate(s *share.Share, r *record) error {
	if r.OnDelete == retainData {
		return nil
	}
	parent, err := safepath.OpenBeneath(s.Dir(), path.Dir(r.SubDir))
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeQuietly(parent)
	base := path.Base(r.SubDir)
	if r.OnDelete == deleteData {
		return toTrash(s, parent, base, r)
	}
	archive := "archived-" + base + "-" + r.Turn
	if there, err := exists(parent, archive); err != nil || there {
		return err // An earlier call did it: nobody else knows the number.
	}
	if err := moveDir(parent, base, parent, archive); err != nil {
		return err
	}
	e.log.Info("a deleted volume is archived", "share", s.Address.String(), "directory", path.Join(path.Dir(r.SubDir), archive))
	return nil
}

// toTrash moves a directory where nobody looks it up.
func toTrash(s *share.Share, parent *os.File, name string, r *record) error {
	return moveDir(parent, name, s.Dir(), share.At(share.Trash, r.key()))
}

// moveDir moves a directory; one that is gone was moved already. Only a directory is moved: a link or file in a volume's
// place is somebody else's.
func moveDir(from *os.File, name string, to *os.File, target string) error {
	var stat unix.Stat_t
	err := unix.Fstatat(int(from.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return &os.PathError{Op: "stat", Path: name, Err: err}
	case stat.Mode&unix.S_IFMT != unix.S_IFDIR:
		return backends.Errorf(backends.Unavailable, "%s is no directory (%s): it is left alone", name, fs.FileMode(stat.Mode&0o777))
	}
	return moveAway(from, name, to, target)
}

// moveAway moves what may be gone already.
func moveAway(from *os.File, name string, to *os.File, target string) error {
	err := unix.Renameat(int(from.Fd()), name, int(to.Fd()), target)
	if errors.Is(err, unix.EACCES) { // A directory that may not be written to cannot move; its owner may change that.
		if unix.Fchmodat(int(from.Fd()), name, 0o700, unix.AT_SYMLINK_NOFOLLOW) == nil {
			err = unix.Renameat(int(from.Fd()), name, int(to.Fd()), target)
		}
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.LinkError{Op: "rename", Old: name, New: target, Err: err}
	}
	return nil
}
