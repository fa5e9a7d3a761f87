package nfs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// publish makes the item exist, by one link: the draft is complete. Kinds: Invalid when its directory is not the
// driver's; Busy.
func (m *making) publish(ctx context.Context, r *record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.Kind == volumeKind {
		if err := m.reserve(r); err != nil {
			return err
		}
		if err := endChanges(m.home, r.ID, ""); err != nil {
			return err
		}
	}
	err := m.home.Publish(r.key()+suffix, r.Kind.folder(), r.ID+suffix)
	if errors.Is(err, fs.ErrExist) { // It may be our own: the caller retries if an answer was lost.
		if now, readErr := read(m.home, r.Kind.folder(), r.ID+suffix); readErr != nil || now.Turn != r.Turn {
			return errors.Join(backends.Errorf(backends.Busy, "another controller has made it: ask again"), readErr)
		}
	} else if err != nil {
		return err
	}
	if err := m.putInPlace(m.share, m.home, r); err != nil {
		return err
	}
	if err := m.hasData(r); err != nil {
		return err
	}
	return m.home.Remove(share.Staging, r.key()+suffix)
}

// settle moves the parts of a published item to their places. Each part can be moved only once, because its name in
// staging is never used again, and a late controller does not find it. So any controller may do it for another.
func (e *engine) settle(s *share.Share, h *share.Home, r *record) error {
	for _, p := range r.parts() {
		waits, err := exists(s.Dir(), share.At(share.Staging, p.draft))
		if err == nil && waits {
			err = e.moveIn(s, h, r, p)
		}
		if err == nil {
			err = giveModeBack(s, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parentOf opens the directory to which a part moves. That of a volume is created again, if a user has removed it since
// the volume's directory was claimed. Kinds: as parent.
func (e *engine) parentOf(s *share.Share, h *share.Home, r *record, p part) (*os.File, error) {
	parent, err := openDir(s, path.Dir(p.place))
	if errors.Is(err, fs.ErrNotExist) && r.Kind == volumeKind {
		return e.parent(s, h, r.SubDir)
	}
	return parent, err
}

// putInPlace is settle for a volume whose place, or a directory above it, may just have been taken. In that case the
// volume is taken back, because no caller has received it. Kinds: Invalid.
func (e *engine) putInPlace(s *share.Share, h *share.Home, r *record) error {
	why := e.settle(s, h, r)
	switch {
	case backends.Is(why, backends.Invalid):
	case failure.IsAny(why, unix.ENOTEMPTY, unix.EEXIST, unix.ENOTDIR):
		why = notOurs(r.SubDir, s)
	default:
		return why
	}
	return cmp.Or(e.takeBack(s, h, r), why)
}

// takeBack undoes the publishing of an item that no caller has received.
func (e *engine) takeBack(s *share.Share, h *share.Home, r *record) error {
	e.janitors.add(s.Address)
	return ignoreGone(e.bury(h, r))
}

// hasData fails if the item was published without its data, and takes it back: the draft was removed, perhaps by hand.
// Kinds: Unavailable.
func (m *making) hasData(r *record) error {
	for _, p := range r.parts() {
		parent, err := openDir(m.share, path.Dir(p.place))
		if err != nil {
			return err
		}
		there, err := exists(parent, path.Base(p.place))
		closeQuietly(parent)
		if err == nil && !there {
			err = cmp.Or(m.takeBack(m.share, m.home, r), backends.Errorf(backends.Unavailable,
				"%s was removed on %s before it was in its place (leave that folder to the driver): %w",
				share.At(share.Staging, p.draft), m.share.Address, errFenced))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
