package nfs

import (
	"errors"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// earlier gives up the unfinished items of an earlier version of the driver, which kept their records in making. A
// record that cannot be read may be a newer version's.
func (j *janitors) earlier(s *share.Share, h *share.Home) error {
	names, err := h.Names(share.Making, suffix)
	if err != nil {
		return ignoreGone(err) // The janitor creates the folder again, in which nothing is begun any more.
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

// abandon moves a record from making to the trash.
func (e *engine) abandon(h *share.Home, name string, r *record) error {
	if r.OnDelete != "" {
		r.OnDelete = deleteData // Its contents were never used.
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
