package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// zeroHeld reads everything that the file of a loop device holds (SEEK_DATA, lseek(2)): a hole reads as zeros. whole is
// false if that proves nothing: for another device, for a file that cannot be asked, and for a file that holds more
// than is to be read (dense).
func (w *window) zeroHeld(ctx context.Context) (zero, whole bool) {
	dev, ok := w.r.(*os.File)
	if !ok {
		return true, false
	}
	file, ok := w.openHeld(dev)
	if !ok {
		return w.err == nil, false
	}
	defer func() { _ = file.Close() }() // only inspected
	left := w.most
	for offset := int64(0); offset < w.size; {
		held, err := nextHeld(file, offset)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil && offset == 0 {
			return true, false // this filesystem cannot tell
		}
		if w.err = err; err != nil {
			return false, false
		}
		offset = held.offset + held.length
		read := min(held.length, left)
		from, to := held.offset&^(markSize-1), min((held.offset+read+markSize-1)&^(markSize-1), w.size)
		if from < to && !w.zero(ctx, from, to-from) {
			return false, false
		}
		if left -= held.length; left < 0 {
			w.dense = true
			return true, false
		}
	}
	return true, true
}

// nextHeld returns the first extent at or after an offset in which a file holds data.
func nextHeld(file *os.File, offset int64) (extent, error) {
	start, err := unix.Seek(int(file.Fd()), offset, unix.SEEK_DATA)
	if err != nil {
		return extent{}, err
	}
	end, err := unix.Seek(int(file.Fd()), start, unix.SEEK_HOLE)
	return extent{start, end - start}, err
}

// openHeld opens the file of a loop device that shows the whole file, if it has the name that the kernel knows.
// Afterwards everything that was written to the device is in the file.
func (w *window) openHeld(dev *os.File) (*os.File, bool) {
	const loopMajor = 7
	var stat unix.Stat_t
	if err := unix.Fstat(int(dev.Fd()), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFBLK ||
		unix.Major(stat.Rdev) != loopMajor {
		return nil, false
	}
	info, err := unix.IoctlLoopGetStatus64(int(dev.Fd()))
	if err != nil || info.Offset != 0 {
		return nil, false
	}
	name, err := rawfile.Read(fmt.Sprintf("/sys/dev/block/%d:%d/loop/backing_file", loopMajor, unix.Minor(stat.Rdev)))
	if err != nil {
		return nil, false
	}
	fd, err := unix.Open(strings.TrimSuffix(string(name), "\n"),
		unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	file := os.NewFile(uintptr(fd), string(name))
	var held unix.Stat_t
	if err := unix.Fstat(fd, &held); err != nil || held.Dev != info.Device || held.Ino != info.Inode {
		_ = file.Close() // another file
		return nil, false
	}
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	if w.err = unix.SyncFileRange(int(dev.Fd()), 0, 0, all); w.err != nil {
		_ = file.Close() // only inspected
		return nil, false
	}
	return file, true
}
