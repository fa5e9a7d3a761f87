package disks

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// relativesOf returns the names of the volumes that share bytes with an open device.
func relativesOf(f *os.File) ([]string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("look at %s: %w", f.Name(), err)
	}
	return discovery.Relatives(unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
}

// sharing returns the names of the volumes that share bytes with an open device: those that its disk or its partitions
// are, and the names that the filesystems on them have as volumes once they are mounted. The contents of a device whose
// offer was acknowledged are its user's, who may have copied any filesystem. A device that cannot be read, as a disk
// that fails, can be wiped if no filesystem is offered that it could hold.
func (e *Engine) sharing(ctx context.Context, f *os.File, v report.Volume) ([]string, error) {
	relatives, err := relativesOf(f)
	if err != nil || e.isAcknowledged(v.Name) {
		return relatives, err
	}
	filesystems, err := discovery.Filesystems(ctx, f, v.SizeBytes)
	if err != nil && e.offersFilesystems() {
		return nil, fmt.Errorf("whether volume %s (%s) holds the filesystem of another volume is not known: %w", v.Name,
			v.Device, err)
	}
	return append(relatives, filesystems...), nil
}

// offersFilesystems reports whether an offered volume may be a filesystem. One that is not found may be.
func (e *Engine) offersFilesystems() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.offers {
		isDevice := func(v report.Volume) bool { return v.Name == name && v.Mode == report.Block }
		if !slices.ContainsFunc(e.found, isDevice) {
			return true
		}
	}
	return false
}

// isAcknowledged reports whether a volume is offered, and a look has found it free since.
func (e *Engine) isAcknowledged(volume string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, isOffered := e.offers[volume]
	note := e.volumes[volume]
	return isOffered && note != nil && !note.Unproven
}

// isApart checks that a volume shares no bytes with an offered one, which may be used at any moment. Two wipes of
// devices exclude each other, because each opens its device exclusively.
//
// Earlier versions offered both a disk and its partition, or a filesystem that is mounted from them. If both are to be
// wiped, the one above comes first: the partition, or the filesystem, while which is mounted its disk cannot be opened.
// Otherwise each would wait for the other's offer to go. A disk that is to be wiped has no user. Its deletion may be
// withdrawn at any time, so each step of a wipe of a device calls isApart.
func (e *Engine) isApart(v report.Volume, relatives []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	whole, isPart := report.Whole(v.Identity)
	for _, name := range relatives {
		_, isOffered := e.offers[name]
		isFirst := v.Mode == report.Filesystem || isPart && name == discovery.NameOf(whole)
		if !isOffered || isFirst && e.isToBeWiped(name) {
			continue
		}
		return fmt.Errorf("volume %s (%s) cannot be wiped: it shares its bytes with the volume %s, which is offered; if it "+
			"only holds a copy of that volume's filesystem, remove the copy with wipefs", v.Name, v.Device, name)
	}
	return nil
}

// isToBeWiped reports whether a deletion of a volume is wanted and not complete. The lock is held.
func (e *Engine) isToBeWiped(volume string) bool {
	return slices.ContainsFunc(e.wanted.Deletions, func(d report.Deletable) bool {
		note := e.operations[d.ID]
		return d.Volume == volume && (note == nil || !note.Complete)
	})
}
