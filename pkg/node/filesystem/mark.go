package filesystem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Mark says on the device itself that it was proven blank and is being formatted. It is written before mkfs and erased
// after mkfs, before the result is mounted. While it is there, no data can be on the device. So the result of an
// interrupted mkfs may be formatted again, on this node or another, after a kill or a loss of power. A filesystem that
// was used has no mark.
type Mark struct {
	Volume string `json:"volume"`
	FSType string `json:"fsType"`
}

const (
	markSize  = 4096 // bytes: a block of any device
	markMagic = "stowage: this device was blank and is being formatted\n"
)

// markPlaces returns where a mark is written. No mkfs writes to all of the places, at any size of the device. The first
// is in the metadata that large ext filesystems keep at their start, the second in the bitmaps of small ones; both are
// free space to xfs and btrfs. TestMarkOutlivesFormatting checks that.
func markPlaces(deviceSize int64) []int64 {
	const (
		first  = 4864 << 10
		second = 50<<20 + 512<<10
		ending = 256 << 10 // tools wipe less than this at the end of such a small device
	)
	switch {
	case deviceSize < first+ending:
		return []int64{(deviceSize - ending) / markSize * markSize}
	case deviceSize < second+ending:
		return []int64{first}
	}
	return []int64{first, second}
}

// page returns the contents of the mark at a place.
func (m Mark) page(place int64) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	page := make([]byte, markSize)
	text := fmt.Appendf(nil, "%s%s\n", markMagic, body)
	if len(text) > markSize-sha256.Size {
		return nil, backends.Errorf(backends.Invalid, "the handle of volume %.64q... is too long to be noted on a device",
			m.Volume)
	}
	copy(page, text)
	sum := markSum(page, place)
	copy(page[markSize-sha256.Size:], sum[:])
	return page, nil
}

// markSum binds a page to its place, so that a copy elsewhere is invalid.
func markSum(page []byte, place int64) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(bytes.Clone(page[:markSize-sha256.Size]), "at %d", place))
}

// readMark returns the mark that a page holds.
func readMark(page []byte, place int64) (Mark, bool) {
	text, found := bytes.CutPrefix(page, []byte(markMagic))
	if !found || len(page) != markSize {
		return Mark{}, false
	}
	var m Mark
	sum := markSum(page, place)
	end := bytes.IndexByte(text, '\n')
	if end < 0 || !bytes.Equal(sum[:], page[markSize-sha256.Size:]) || json.Unmarshal(text[:end], &m) != nil {
		return Mark{}, false
	}
	return m, true
}

// mark returns the first mark on a device; the zero Mark if there is none.
func (w *window) mark() Mark {
	for _, place := range markPlaces(w.size) {
		if m, ok := readMark(w.at(place, markSize), place); ok {
			return m
		}
	}
	return Mark{}
}

// write puts the mark on a device and returns once it would survive a loss of power.
func (m Mark) write(ctx context.Context, device *os.File, size int64) error {
	return noting(ctx, device, func() error {
		for _, place := range markPlaces(size) {
			page, err := m.page(place)
			if err != nil {
				return err
			}
			if _, err := device.WriteAt(page, place); err != nil {
				return err
			}
		}
		return device.Sync()
	})
}

// eraseMark removes all marks from a device, and returns once none would reappear after a loss of power. What mkfs has
// written in their places stays, and is on the device before the marks go.
func eraseMark(ctx context.Context, device *os.File, size int64) error {
	return noting(ctx, device, func() error {
		if err := device.Sync(); err != nil {
			return err
		}
		page := make([]byte, markSize)
		for _, place := range markPlaces(size) {
			if err := readFull(device, page, place); err != nil {
				return err
			}
			if _, marked := readMark(page, place); !marked {
				continue
			}
			if _, err := device.WriteAt(make([]byte, markSize), place); err != nil {
				return err
			}
		}
		return device.Sync()
	})
}

// noting changes the marks on a device. Once begun, the change is waited for, even after the end of the context: a page
// that is written later would be written into the data of the next user of the device, here or on another node. As long
// as the change has not ended, the formatting has not either, and the volume is not unstaged.
func noting(ctx context.Context, device *os.File, work func() error) error {
	err := ctx.Err()
	if err == nil {
		err = work()
	}
	if _, kinded := errors.AsType[*backends.Error](err); err != nil && !kinded {
		return backends.Errorf(backends.Unavailable, "noting on %q whether it is being formatted: %w", device.Name(), err)
	}
	return err
}
