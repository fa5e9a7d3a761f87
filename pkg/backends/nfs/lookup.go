package nfs

import (
	"errors"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// lookup reads the record of something, and fails with fs.ErrNotExist where there is none.
type lookup func(h *share.Home, k kind, id string) (*record, error)

// inPlace is a lookup for who may only look.
func inPlace(h *share.Home, k kind, id string) (*record, error) {
	return readSurely(h, k.folder(), id+suffix)
}

// anywhere is a lookup for who acts on there being no record: a late deletion may have moved it away. Then it is put
// back. Kinds: Busy then.
func (e *engine) anywhere(h *share.Home, k kind, id string) (*record, error) {
	return lookAgain(h, k, id, e.layOf)
}

// everywhere is anywhere for who takes something away where there is no record: it looks at the whole trash, whatever
// version of the driver has moved the record.
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
	return read(h, k.folder(), id+suffix) // Another may have put it back meanwhile.
}
