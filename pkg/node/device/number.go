package device

import (
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/loops"
)

// The number of a loop device is reused once the device is free, perhaps for an image on a server that does not answer.
// Opening the device, or asking it what it holds, then waits for that server. So a device of which only the number is
// known is looked up in sysfs, which waits for nothing, before it is opened.

// attachment is what sysfs shows of a loop device while it holds one file.
type attachment struct {
	loops.Device
	sequence uint64 // as from Sequence; 0 if the kernel is too old
}

// shown returns what sysfs shows of the loop device; holds is false if it holds no file. Kinds: Unavailable.
func (l loopDevice) shown() (a attachment, holds bool, err error) {
	// The sequence number is read before the file, so that a later attachment's number is never taken for the file's.
	if a.sequence, err = sequenceShown(filepath.Join("/sys/block", filepath.Base(l.path))); err != nil {
		return attachment{}, false, backends.Errorf(backends.Unavailable, "looking at the sequence number of %s: %w", l.path,
			err)
	}
	a.Device, holds, err = loops.Shown(l.path)
	return a, holds, err
}

// sequenceShown returns the sequence number in the sysfs directory of a disk; 0 if the kernel is too old.
func sequenceShown(dir string) (uint64, error) {
	text, known, err := attribute(dir, "diskseq")
	if err != nil || !known {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// Numbers returns the number of the block device at a path, which is no link, and its sequence number, as from
// Sequence. Each is 0 if unknown. The device is not opened, so one that does not answer does not delay the call.
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
		disk = filepath.Dir(disk) // The disk has the number, as with Sequence.
	}
	if sequence, err = sequenceShown(disk); err != nil {
		return stat.Rdev, 0
	}
	return stat.Rdev, sequence
}

// ended reports whether the loop device no longer has the attachment. On a kernel without sequence numbers the device
// itself must be asked.
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
	_ = node.Close() // only inspected
	return false, nil
}

// mayBe reports whether the attachment may be that of an image: by the sequence number if both are known, and else by
// the file's name, which is only a guess.
func (a attachment) mayBe(image subject, sequence uint64) bool {
	if sequence != 0 && a.sequence != 0 {
		return a.sequence == sequence || a.File == image.gone()
	}
	return a.Named(image.path) || a.Named(image.path+loops.Deleted) || a.File == image.gone()
}

// unchanged checks that a loop device that was found by a search still shows the same file. A device that shows another
// file is not opened: it may belong to another user by now. holds is false if it has no file any more. Kinds:
// Unavailable for another file.
func (l loopDevice) unchanged() (holds bool, err error) {
	now, holds, err := l.shown()
	if err != nil || !holds || now.File == l.file {
		return holds, err
	}
	return true, backends.Errorf(backends.Unavailable, "%s held %q when it was found, and holds %q now: look again",
		l.path, l.file, now.File)
}
