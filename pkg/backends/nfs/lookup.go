package nfs

import (
	"errors"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// lookup reads the record of an item, and fails with fs.ErrNotExist where there is none.
type lookup func(h *share.Home, k kind, id string) (*record, error)

// inPlace is a lookup for callers that may only read.
func inPlace(h *share.Home, k kind, id string) (*record, error) {
	return readSurely(h, k.folder(), id+suffix)
}

// anywhere is a lookup for callers that act on the absence of a record. If a late deletion has moved the record away,
// it is put back. Kinds: Busy then.
func (e *engine) anywhere(h *share.Home, k kind, id string) (*record, error) {
	return lookAgain(h, k, id, e.layOf)
}

// everywhere is anywhere for callers that remove something if there is no record. It looks at the whole trash, so it
// finds the record whichever version of the driver has moved it.
func (e *engine) everywhere(h *share.Home, k kind, id string) (*record, error) {
	return lookAgain(h, k, id, e.layEverywhere)
}

func lookAgain(h *share.Home, k kind, id string, lay func(h *share.Home, id string) error) (*record, error) {
	r, err := inPlace(h, k, id)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := lay(h, id); err != nil {
		return nil, err
	}
	return read(h, k.folder(), id+suffix) // Another controller may have put it back meanwhile.
}
