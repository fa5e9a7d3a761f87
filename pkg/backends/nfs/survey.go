package nfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// mostBytes is the limit of what one enumeration reads of a share and keeps, in bytes. A regular volume takes 1.3 KiB
// of it: 600 bytes for its record, as much for the remembered item, and its name. So 200,000 fit, and the controller,
// which has 1 GiB of memory, can handle more than one flooded share.
const mostBytes = 256 << 20

// flooded adds advice to the failure of a share that exceeds the budget. Kinds: Unavailable.
func flooded(err error, p place, k kind) error {
	if !errors.Is(err, share.ErrFlooded) {
		return err
	}
	return backends.Errorf(backends.Unavailable,
		"%s on the share %s holds more records than this driver makes: find out who else writes there, and remove what is "+
			"not the driver's; if it is all the driver's, move volumes to another share: %w",
		share.At(k.folder(), ""), p.key(), err)
}

// survey is the reading of a share for an enumeration.
type survey struct {
	home  *share.Home // with the budget
	shown *share.Home // for records that are not kept
	kind  kind
	place place
	from  string // the ID after which it begins
	limit int    // of the result; 0 for all
	want  func(*record) bool
	all   *sightings // collects all of the kind; nil to stop at the limit
}

// entries reads the items of a share after an ID.
func (l survey) entries(ctx context.Context) (found []entry, err error) {
	ids, err := l.home.Names(l.kind.folder(), suffix)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing(l.kind.folder())
	}
	if err != nil {
		return nil, err
	}
	// Items with other names have no handle.
	ids = slices.DeleteFunc(ids, func(id string) bool { return !isHex(id, 32) })
	slices.Sort(ids)
	at, there := slices.BinarySearch(ids, l.from)
	if there {
		at++
	}
	full := func() bool { return l.limit > 0 && len(found) >= l.limit }
	for chunk := range slices.Chunk(ids[at:], 4*readAtOnce) {
		read, err := l.readAll(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for _, e := range read {
			if e.record == nil {
				continue
			}
			if err := l.keep(e); err != nil {
				return nil, err
			}
			if !full() && l.want(e.record) {
				found = append(found, e)
			}
		}
		if l.all == nil && full() {
			break
		}
	}
	return found, nil
}

// keep remembers an entry, if all are remembered. Kinds: Unavailable beyond the budget.
func (l survey) keep(e entry) error {
	if l.all == nil {
		return nil
	}
	bytes, err := l.all.add(e)
	if err != nil {
		return err
	}
	return l.home.Charge(bytes)
}
