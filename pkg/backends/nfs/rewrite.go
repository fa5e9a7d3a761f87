package nfs

import (
	"context"
	"errors"
	"io/fs"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// edit changes a record.
type edit func(s *share.Share, r *record) error

// rewriting changes the record of a volume. Another controller may have been stopped in the middle of a change. So its
// draft is removed before the record is read. Then the record is the one that was acknowledged last, and an overtaken
// controller has no draft left to replace it with. Kinds: as changing; Busy.
func (e *engine) rewriting(ctx context.Context, handle, name string, do edit) error {
	change := func(ctx context.Context, s *share.Share, h *share.Home, r *record) error {
		turn, err := e.lead(ctx, h, changeCalls, name+" "+r.ID)
		if err != nil {
			return err
		}
		rw := &rewrite{e, h, turn, r, func(r *record) error { return do(s, r) }}
		_, changed, err := rw.next("")
		if err == nil && changed {
			err = rw.replace()
		}
		return err
	}
	return e.changing(ctx, volumeKind, handle, name, change)
}

// rewrite is a change of a record under way.
type rewrite struct {
	*engine
	home   *share.Home
	turn   uint64  // of its permit
	called *record // at the time of the call
	change func(r *record) error
}

// next ends what others are changing, and is what the record is to be then. Kinds: NotFound; Busy when the volume was
// made anew; those of the change.
func (rw *rewrite) next(draft string) (r *record, changed bool, err error) {
	if err := endChanges(rw.home, rw.called.ID, draft); err != nil {
		return nil, false, err
	}
	if err := rw.home.Refresh(rw.called.Kind.folder()); err != nil {
		return nil, false, err
	}
	if r, err = rw.whole(rw.home, rw.called.Kind, rw.called.ID); err != nil {
		return nil, false, err
	}
	if r.Turn != rw.called.Turn {
		return nil, false, backends.Errorf(backends.Busy, "%w", errReplaced)
	}
	before := *r
	err = rw.change(r)
	return r, !reflect.DeepEqual(*r, before), err
}

// replace puts the changed record in the place of the one that there is. It is a draft before that one is read, and
// goes with the volume: who deletes that, or publishes another one, removes such drafts first. So who was stopped in
// between replaces nobody else's record. Kinds: as next.
func (rw *rewrite) replace() (err error) {
	var draft *share.Draft
	err = rw.spend(rw.home, changeCalls, rw.turn, func(permit string) (err error) {
		draft, err = rw.home.DraftOf(permit, rw.called.ID+suffix)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Drop()) }()
	r, changed, err := rw.next(draft.Name())
	if err != nil || !changed {
		return err
	}
	if r.Revision > 0 {
		r.Revision++
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	err = draft.Replace(r.Kind.folder(), r.ID+suffix, data)
	if errors.Is(err, fs.ErrNotExist) {
		err = backends.Errorf(backends.Busy,
			"another controller has changed or deleted it, or its janitor has ended the change: ask again: %w", err)
	}
	return err
}

// endChanges ends earlier changes of the record with the ID, except the one with the draft.
func endChanges(h *share.Home, id, but string) error {
	if err := h.Refresh(share.Staging); err != nil {
		return err
	}
	names, err := h.NamesOf(share.Staging, id+suffix+".", "")
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == but {
			continue
		}
		if err := h.Charge(0); err != nil {
			return err
		}
		if err := h.Remove(share.Staging, name); err != nil {
			return err
		}
	}
	return nil
}
