package device

import (
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/loops"
)

// A number of a loop device is given out again once the device is free, perhaps to an image on a server that does not
// answer. Whoever opens the device then, or asks it what it holds, waits for that server. So sysfs is looked at before
// a device is opened of which no more than the number is known: it waits for nobody.

// attachment is what sysfs shows of a loop device while it holds one file.
type attachment struct {
	loops.Device
	sequence uint64 // as of Sequence; 0 where the kernel is too old
}

// shown returns what sysfs shows of the loop device; holds is false where it holds no file. Kinds: Unavailable.
func (l loopDevice) shown() (a attachment, holds bool, err error) {
	// The number is read before the file: so that of a later attachment is never taken for the file's.
	if a.sequence, err = sequenceShown(filepath.Join("/sys/block", filepath.Base(l.path))); err != nil {
		return attachment{}, false, backends.Errorf(backends.Unavailable, "looking at the sequence number of %s: %w", l.path,
			err)
	}
	a.Device, holds, err = loops.Shown(l.path)
	return a, holds, err
}

// sequenceShown is the sequence number that sysfs shows in the directory of a disk; 0 where the kernel is too old.
func sequenceShown(dir string) (uint64, error) {
	text, known, err := attribute(dir, "diskseq")
	if err != nil || !known {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// Numbers returns the number of the block device at a path, which is no link, and its sequence number, as of Sequence.
// Each is 0 where it cannot be told. The device is not opened: one that does not answer holds up nobody.
func Numbers(path string) (number, sequence uint64) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, 0
	}
	disk, err := filepath.EvalSymlinks(sysfsDir(unix.Major(stat.Rdev), unix.Minor(stat.Rdev)))
	if err != nil {
		return stat.Rdev, 0
	}
	if _, partition, err := attribute(disk, "partition"); err != nil || partition {
		disk = filepath.Dir(disk) // The disk has the number, as for Sequence.
	}
	if sequence, err = sequenceShown(disk); err != nil {
		return stat.Rdev, 0
	}
	return stat.Rdev, sequence
}

// ended reports whether what the loop device held is no longer attached to it. A kernel without sequence numbers leaves
// no other way than to ask the device.
func (l loopDevice) ended(was attachment, mine judge) (bool, error) {
	now, holds, err := l.shown()
	switch {
	case err != nil:
		return false, err
	case !holds:
		return true, nil
	case was.sequence != 0 && now.sequence != 0:
		return was.sequence != now.sequence, nil
	}
	node, _, err := l.openIf(mine)
	if err != nil || node == nil {
		return err == nil, err
	}
	_ = node.Close() // only looked at
	return false, nil
}

// mayBe reports whether the attachment may be that of an image: proven by the sequence number where both are known,
// and guessed by the name otherwise.
func (a attachment) mayBe(image subject, sequence uint64) bool {
	if sequence != 0 && a.sequence != 0 {
		return a.sequence == sequence || a.File == image.gone()
	}
	return a.Named(image.path) || a.Named(image.path+loops.Deleted) || a.File == image.gone()
}

// unchanged checks that a loop device that was found by a search still shows the file that it had then. What shows
// another one is not opened: it may be a stranger's by now. holds is false where it has none any more.
// Kinds: Unavailable for another file.
func (l loopDevice) unchanged() (holds bool, err error) {
	now, holds, err := l.shown()
	if err != nil || !holds || now.File == l.file {
		return holds, err
	}
	return true, backends.Errorf(backends.Unavailable, "%s held %q when it was found, and holds %q now: look again",
		l.path, l.file, now.File)
}
