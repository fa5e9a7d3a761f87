package nfs

import (
	"context"
	"errors"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// work is done on an existing item.
type work func(ctx context.Context, s *share.Share, h *share.Home, r *record) error

// found does work on an existing item. Kinds: as parse; NotFound; Unavailable when the share does not answer, or is not
// the one that the handle was made for.
func (e *engine) found(ctx context.Context, k kind, text, name string, do work) error {
	return e.reach(ctx, k, text, name, func(ctx context.Context, s *share.Share, h *share.Home, id string) error {
		r, err := e.byHandle(h, k, id)
		if err != nil {
			return err
		}
		return do(ctx, s, h, r)
	})
}

// byHandle is whole for a handle, and notes that the share is the right one, because the handle was made for it.
func (e *engine) byHandle(h *share.Home, k kind, id string) (*record, error) {
	r, err := e.whole(h, k, id)
	if err == nil {
		e.known.meet(h)
	}
	return r, err
}

// changing is found while no other call in this process changes the item. Kinds: as found; Busy.
func (e *engine) changing(ctx context.Context, k kind, text, name string, do work) error {
	return e.reach(ctx, k, text, name, func(ctx context.Context, s *share.Share, h *share.Home, id string) error {
		unlock, err := e.lock(s, k, id)
		if err != nil {
			return err
		}
		defer unlock()
		r, err := e.byHandle(h, k, id)
		if err != nil {
			return err
		}
		return do(ctx, s, h, r)
	})
}

// reach calls do with the share that a handle names.
func (e *engine) reach(ctx context.Context, k kind, text, name string,
	do func(ctx context.Context, s *share.Share, h *share.Home, id string) error) error {
	hd, err := e.parse(k, text)
	if err != nil {
		return err
	}
	return e.at(ctx, hd, name, func(ctx context.Context, s *share.Share, h *share.Home, id string) error {
		return e.orMissing(h, do(ctx, s, h, id))
	})
}

// at calls do with the share of a handle.
func (e *engine) at(ctx context.Context, hd handle, name string,
	do func(ctx context.Context, s *share.Share, h *share.Home, id string) error) error {
	return e.pool.With(ctx, hd.address, name, func(ctx context.Context, s *share.Share) error {
		h, err := e.homeOf(s, hd)
		if err != nil {
			return err
		}
		return do(ctx, s, h, hd.id)
	})
}

// homeOn returns the home on a share that had one. Kinds: Unavailable when there is none.
func homeOn(s *share.Share) (*share.Home, error) {
	h, err := s.Home(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, backends.Errorf(backends.Unavailable, "%s has no directory %s: does the server export something else?",
			s.Address, share.HomeName)
	}
	return h, err
}

// homeOf returns the home on the share that a handle was made for. Kinds: Unavailable when the share is another.
func (e *engine) homeOf(s *share.Share, hd handle) (*share.Home, error) {
	h, err := homeOn(s)
	if err != nil {
		return nil, err
	}
	if h.Identity() != hd.home {
		return nil, backends.Errorf(backends.Unavailable,
			"%s is another share than the one with identity %x: does the server export something else?", s.Address, hd.home)
	}
	// The share is not noted for enumerations: anybody can write a handle for any server. Listed shares come from the
	// configuration, or from a volume that was created there.
	p := place{hd.address, hd.share}
	p.Connection = ""
	if e.known.has(p) {
		e.seen.identified(p, h.Identity())
	}
	return h, nil
}

// lock excludes other calls in this process from an item on a share, which is about to change. Kinds: Busy.
func (e *engine) lock(s *share.Share, k kind, id string) (unlock func(), err error) {
	open, err := e.tryLock(s, k, id)
	if err != nil {
		return nil, err
	}
	e.seen.forget(s)
	return func() { e.seen.forget(s); open() }, nil
}

// tryLock is lock for calls that change nothing in lists. Kinds: Busy.
func (e *engine) tryLock(s *share.Share, k kind, id string) (unlock func(), err error) {
	unlock, ok, _ := e.locks.TryLock(s.Address.Server + ":" + s.Address.Path + " " + string(k) + " " + id)
	if !ok {
		return nil, backends.Errorf(backends.Busy, "another operation on this %s is under way: ask again", k)
	}
	return unlock, nil
}
