package nfs

import (
	"errors"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// earlier gives up what an earlier version of the driver was making: it kept records of that in making. What cannot be
// read is a newer version's, perhaps.
func (j *janitors) earlier(s *share.Share, h *share.Home) error {
	names, err := h.Names(share.Making, suffix)
	if err != nil {
		return err
	}
	for _, name := range names {
		r, err := read(h, share.Making, name+suffix)
		if err != nil {
			err = j.leave(s, name, err)
		} else {
			err = j.engine.abandon(h, name+suffix, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// abandon puts a record of making in the trash.
func (e *engine) abandon(h *share.Home, name string, r *record) error {
	if r.OnDelete != "" {
		r.OnDelete = deleteData // Nobody has ever seen what is in it.
		data, err := r.encode()
		if err != nil {
			return err
		}
		if err := h.Replace(share.Making, name, data); err != nil {
			return err
		}
	}
	if err := h.Move(share.Making, name, share.Trash, r.key()+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
