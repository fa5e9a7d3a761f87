package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/loops"
)

// loopDevice is a loop device with a file attached.
type loopDevice struct {
	path string // of its node
	file string // as shown by sysfs if the device was found by it; empty otherwise
}

// open opens the node and asks what it holds; a nil file if it holds nothing any more.
func (l loopDevice) open(readOnly bool) (*os.File, *unix.LoopInfo64, error) {
	mode := os.O_RDWR
	if readOnly {
		mode = os.O_RDONLY
	}
	fd, err := unix.Open(l.path, mode|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENXIO) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, backends.Errorf(openKind(err), "opening %s: %w", l.path, err)
	}
	node := os.NewFile(uintptr(fd), l.path)
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err == nil {
		return node, info, nil
	}
	_ = node.Close() // only inspected
	if errors.Is(err, unix.ENXIO) {
		return nil, nil, nil
	}
	return nil, nil, backends.Errorf(backends.Unavailable, "asking %s what it holds: %w", l.path, err)
}

// holds reports whether a loop device with this status holds this file.
func (l *located) holds(info *unix.LoopInfo64) bool {
	return info.Device == l.stat.Dev && info.Inode == l.stat.Ino
}

// attached returns the loop devices that hold the image.
func (l *located) attached(ctx context.Context) ([]loopDevice, error) {
	found, err := loops.Holding(ctx, int(l.Fd()), l.Name())
	devices := make([]loopDevice, len(found))
	for i, d := range found {
		devices[i] = loopDevice{d.Path, d.File}
	}
	return devices, err
}

// FindLoops returns the nodes of all loop devices that hold the image. There is more than one only if another program
// attached it too. A deleted image is searched for by its former name. Kinds: Invalid for a path that is no plain path
// or that leads to no regular file; Denied when this process may not read the image; Unavailable when the image, or a
// device that may hold it, does not answer, or the context ends first.
func FindLoops(ctx context.Context, imagePath string) ([]string, error) {
	call := deadline.Call{Name: fmt.Sprintf("looking for the loop devices of %q", imagePath)}
	found, err := deadline.Do(ctx, call, func(ctx context.Context) ([]loopDevice, error) {
		image, err := subjectOf(imagePath)
		if err != nil {
			return nil, err
		}
		defer image.close()
		return image.loops(ctx)
	}, nil)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(found))
	for i, loop := range found {
		paths[i] = loop.path
	}
	slices.Sort(paths)
	return paths, nil
}

// loops finds the loop devices that hold the image.
func (s subject) loops(ctx context.Context) ([]loopDevice, error) {
	if s.image == nil {
		return deletedLoops(s.gone())
	}
	file, err := s.image.reopen(true)
	if err != nil {
		return nil, backends.Errorf(openKind(err), "opening image %q: %w", s.image.Name(), err)
	}
	defer func() { _ = file.Close() }() // open for reading only
	free, err := unopened(file)
	if err != nil || free {
		return nil, err
	}
	return s.image.attached(ctx)
}

// deletedLoops finds loop devices whose file was deleted, by the kernel's name for it.
func deletedLoops(gone string) ([]loopDevice, error) {
	all, err := loops.Attached()
	if err != nil {
		return nil, err
	}
	var found []loopDevice
	for _, d := range all {
		if d.File != gone {
			continue
		}
		loop := loopDevice{d.Path, d.File}
		deleted, err := loop.holdsDeleted()
		if err != nil {
			return nil, err
		}
		if deleted {
			found = append(found, loop)
		}
	}
	return found, nil
}

// holdsDeleted reports whether the loop device, which was found by the kernel's name for a deleted file, holds one. It
// is asked only if some file really has that name.
func (l loopDevice) holdsDeleted() (bool, error) {
	if _, err := os.Lstat(l.file); errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	node, status, err := l.open(true)
	if err != nil || node == nil {
		return false, err
	}
	defer func() { _ = node.Close() }() // only inspected
	return isDeleted(l.file, status)
}

// lockPoll is how often to retry a lock that is taken.
const lockPoll = 2 * time.Millisecond

// lockImage keeps all other users of this package, in this process or another, from attaching the image until
// unlockImage (flock(2)). The lock ends with the process.
func lockImage(ctx context.Context, image *located) (*os.File, error) {
	guard, err := image.reopen(true)
	if err != nil {
		return nil, backends.Errorf(openKind(err), "opening image %q: %w", image.Name(), err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(guard.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return guard, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = guard.Close() // open for reading only
			return nil, backends.Errorf(backends.Unavailable, "locking image %q: %w", image.Name(), err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = guard.Close() // open for reading only
			return nil, backends.Errorf(backends.Busy, "image %q is locked by somebody else: %w", image.Name(), ctx.Err())
		}
	}
}

// unlockImage releases the lock. Closing the file would not be enough: a process that is being started elsewhere at
// this moment has a copy of every descriptor until it executes its program.
func unlockImage(guard *os.File) {
	_ = unix.Flock(int(guard.Fd()), unix.LOCK_UN) // fails only if there is no lock
	_ = guard.Close()                             // open for reading only
}

// unopened reports whether the image is certainly open through this file only, counting loop devices too. Then there is
// no need to ask all loop devices. Only in that case does the kernel grant a write lease (fcntl(2), F_SETLEASE). An
// open of the image in that instant waits until the next call returns the lease. If returning it fails, unopened closes
// the file, which ends the lease, and returns no answer: a remaining lease would block everyone who opens the image.
//
// Kinds: Unavailable when the lease was not given back.
func unopened(file *os.File) (bool, error) {
	fd := file.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false, nil //nolint:nilerr // no lease: the image is open elsewhere, or its filesystem grants none
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		_ = file.Close() // which ends the lease
		return false, backends.Errorf(backends.Unavailable, "giving back the lease on image %q: %w", file.Name(), err)
	}
	return true, nil
}
