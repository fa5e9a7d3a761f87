package nfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Delete removes the volume. Its record moves to the trash first, and then the volume is gone. Then its directory is
// moved to the trash, renamed, or left in place, as the record says. Data that must be removed is removed in the
// background.
//
// Kinds: NotFound; Busy.
func (e *controllerSide) Delete(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete volume", handle)
	return e.remove(ctx, volumeKind, handle)
}

func (e *engine) remove(ctx context.Context, k kind, text string) error {
	return e.reach(ctx, k, text, "deleting a "+string(k),
		func(ctx context.Context, s *share.Share, h *share.Home, id string) error {
			unlock, err := e.lock(s, k, id)
			if err != nil {
				return err
			}
			defer unlock()
			r, err := e.removable(ctx, h, k, id)
			if r != nil && e.copies.reads(append(r.memberIDs(), r.ID)...) {
				return backends.Errorf(backends.Busy, "it is being copied: ask again")
			}
			if err != nil && !backends.Is(err, backends.NotFound) {
				return err
			}
			// What an earlier call is making yet must not come after the deletion, nor after the answer that there is nothing.
			if err := e.fence(s, h, id, ""); err != nil {
				return err
			}
			if err != nil {
				return e.gone(h, k, id, err)
			}
			return e.removed(s, h, r)
		})
}

// gone returns the failure of a caller that found nothing, after all attempts that could create the item were ended. If
// one created it just before that, the caller retries. Kinds: the failure's; Busy.
func (e *engine) gone(h *share.Home, k kind, id string, failure error) error {
	_, err := e.placed(h)(present(h, k, id, e.everywhere))
	switch {
	case err == nil:
		return backends.Errorf(backends.Busy, "an earlier call has made it just now: ask again")
	case backends.Is(err, backends.NotFound):
		return failure
	}
	return err
}

// removable returns the record of the item to be removed. It is read before the permit is checked. So it is the record
// at the time of the call, and an item that another controller has created in its place since is not removed. Kinds:
// NotFound; InUse for a snapshot of a group; Busy.
func (e *engine) removable(ctx context.Context, h *share.Home, k kind, id string) (*record, error) {
	r, err := e.byHandle(h, k, id)
	if err != nil && !backends.Is(err, backends.NotFound) {
		return nil, err
	}
	if _, failed := e.lead(ctx, h, k.calls(), "removing "+id); failed != nil {
		return nil, failed
	}
	if err == nil && r.Group != nil {
		err = backends.Errorf(backends.InUse, "it belongs to the group snapshot %s: delete that", r.Group.Handle)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (e *engine) removed(s *share.Share, h *share.Home, r *record) error {
	if err := e.bury(h, r); err != nil {
		return err
	}
	if err := e.dispose(s, h, r); err != nil && !errors.Is(err, errNotThere) {
		// It is gone for all callers; the janitor does the rest when it can.
		e.log.Warn("the directory of what was deleted could not be taken away yet", "share", s.Address.String(), "directory",
			r.SubDir, "error", err)
	}
	e.janitors.add(s.Address)
	return nil
}

// dispose removes the directory of an item in the trash from its place, and releases the place. It may be called again.
// It fails with errNotThere as buryAgain does. Kinds: Unavailable where the folder of the snapshots is missing.
func (e *engine) dispose(s *share.Share, h *share.Home, r *record) error {
	for _, p := range r.parts() { // Parts that are not in their place yet never will be.
		if err := moveAway(s.Dir(), share.At(share.Staging, p.draft), s.Dir(), share.At(share.Trash, p.draft),
			false); err != nil {
			return err
		}
	}
	if r.Kind != volumeKind { // Otherwise data in a folder that is missing now would stay for ever.
		if err := hasFolder(h, share.Snapshots); err != nil {
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
	defer e.disposing.hold(s, r.key())()
	last, err := e.buryAgain(h, r)
	if err != nil {
		return err
	}
	return e.vacate(s, h, last)
}

// disposals are locks for disposing: one goroutine of this process at a time disposes of an item. Each share has its
// own locks, because the server of another may be slow on purpose.
type disposals struct {
	mu sync.Mutex
	on map[string]*[64]sync.Mutex // by the share's address
}

// hold takes the lock of a key on a share.
func (d *disposals) hold(s *share.Share, key string) (release func()) {
	lock := &d.locks(s)[stripe(key)]
	lock.Lock()
	return lock.Unlock
}

func (d *disposals) locks(s *share.Share) *[64]sync.Mutex {
	d.mu.Lock()
	defer d.mu.Unlock()
	where := s.Address.String()
	if d.on == nil {
		d.on = map[string]*[64]sync.Mutex{}
	}
	if d.on[where] == nil {
		d.on[where] = new([64]sync.Mutex)
	}
	return d.on[where]
}

// stripe returns the index of a key's lock.
func stripe(key string) int { return (int(key[0])*31 + int(key[1])) % 64 }

// toTrash moves a directory to the trash, where it is never looked up.
func toTrash(s *share.Share, parent *os.File, name string, r *record) error {
	return moveDir(parent, name, s.Dir(), share.At(share.Trash, r.key()), false)
}

// moveDir moves a directory; if it is gone, it was moved already. Only a directory is moved: a link or file in a
// volume's place is not the driver's.
func moveDir(from *os.File, name string, to *os.File, target string, kept bool) error {
	stat, err := safepath.NewRoot(from).Lstat(name, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case stat.Mode&unix.S_IFMT != unix.S_IFDIR:
		return backends.Errorf(backends.Unavailable, "%s is no directory (%s): it is left alone", name,
			fs.FileMode(stat.Mode&0o777))
	}
	return moveAway(from, name, to, target, kept)
}

// moveAway moves an entry that may be gone already. A directory without write permission cannot move, but its owner may
// change the mode. An entry that is kept gets its mode back, wherever it is then. Any other can be removed with the
// new mode.
func moveAway(from *os.File, name string, to *os.File, target string, kept bool) error {
	source, place := safepath.NewRoot(from), safepath.NewRoot(to)
	err := source.RenameTo(name, place, target)
	if !errors.Is(err, unix.EACCES) {
		return ignoreGone(err)
	}
	stat, failed := source.Lstat(name, 0)
	if failed != nil || source.Chmod(name, fileMode(uint32(stat.Mode)|0o700)) != nil {
		return err
	}
	err = ignoreGone(source.RenameTo(name, place, target))
	switch {
	case !kept:
		return err
	case err != nil:
		return errors.Join(err, ignoreGone(source.Chmod(name, fileMode(uint32(stat.Mode)))))
	}
	return ignoreGone(place.Chmod(target, fileMode(uint32(stat.Mode))))
}
