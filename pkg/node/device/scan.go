package device

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// loopDevice is a loop device that has a file attached, by its node's path.
type loopDevice struct{ path string }

// open opens the node and asks what it holds; a nil file when it holds nothing any more.
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
	_ = node.Close() // only looked at
	if errors.Is(err, unix.ENXIO) {
		return nil, nil, nil
	}
	return nil, nil, backends.Errorf(backends.Unavailable, "asking %s what it holds: %w", l.path, err)
}

// holds tells whether a loop device's status says that it holds this file.
func (l *located) holds(info *unix.LoopInfo64) bool {
	return info.Device == l.stat.Dev && info.Inode == l.stat.Ino
}

// attached returns the loop devices that hold the image. Those are asked first whose file has the image's
// name, in a directory of the same name: the kernel makes that name of what it knows, and follows renames, while
// the answer to LOOP_GET_STATUS64 comes from the filesystem that the file is on, and somebody else's may be a
// server that does not answer. What is above the directory depends on the mount namespace of who looks. Only
// when none of them holds the image, which has another name then, are the others asked too.
func (l *located) attached() ([]loopDevice, error) {
	alike, err := l.attachedWhere(func(file string) bool { return lastTwo(file) == lastTwo(l.Name()) })
	if err != nil || len(alike) > 0 {
		return alike, err
	}
	return l.attachedWhere(func(file string) bool { return lastTwo(file) != lastTwo(l.Name()) })
}

// attachedWhere asks the loop devices whose file's path is accepted.
func (l *located) attachedWhere(accept func(file string) bool) ([]loopDevice, error) {
	var found []loopDevice
	err := eachLoop(func(loop loopDevice, file string) error {
		if !accept(file) {
			return nil
		}
		node, info, err := loop.open(true)
		if err != nil || node == nil {
			return err
		}
		if l.holds(info) {
			found = append(found, loop)
		}
		return node.Close()
	})
	return found, err
}

// lastTwo is the end of a path: a file and its directory.
func lastTwo(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// eachLoop visits the loop devices that hold a file, with the file's path as the kernel sees it now.
func eachLoop(visit func(loop loopDevice, file string) error) error {
	// filepath.Glob would not do: it takes a directory that cannot be read for an empty one, and an image that
	// seems to be attached to nothing is attached once more.
	entries, err := os.ReadDir("/sys/block")
	if err != nil {
		return backends.Errorf(backends.Unavailable, "listing loop devices: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "loop") {
			continue
		}
		dir := filepath.Join("/sys/block", entry.Name())
		file, ok, err := attribute(dir, "loop/backing_file")
		if err != nil {
			return backends.Errorf(backends.Unavailable, "looking at loop devices: %w", err)
		}
		if !ok {
			continue
		}
		if err := visit(loopDevice{"/dev/" + filepath.Base(dir)}, strings.TrimSuffix(string(file), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// FindLoops returns the nodes of all loop devices that hold the image, one more than none only when
// somebody else attached it too. An image that was deleted is looked for under the name it had.
// Kinds: Invalid for a path that is no plain path or that leads to no regular file.
func FindLoops(imagePath string) ([]string, error) {
	loops, err := loopsOf(imagePath)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(loops))
	for i, loop := range loops {
		paths[i] = loop.path
	}
	slices.Sort(paths)
	return paths, nil
}

func loopsOf(imagePath string) ([]loopDevice, error) {
	image, err := locateImage(imagePath)
	if backends.Is(err, backends.NotFound) {
		return deletedLoops(imagePath)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = image.Close() }() // O_PATH
	file, err := image.reopen(true)
	if err != nil {
		return nil, backends.Errorf(openKind(err), "opening image %q: %w", imagePath, err)
	}
	defer func() { _ = file.Close() }() // open for reading only
	if unopened(file) {
		return nil, nil
	}
	return image.attached()
}

// deletedLoops finds loop devices whose file is gone. The kernel marks its name, as it was without
// symlinks, with " (deleted)".
func deletedLoops(imagePath string) ([]loopDevice, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(imagePath))
	if err != nil {
		dir = filepath.Dir(imagePath)
	}
	gone := filepath.Join(dir, filepath.Base(imagePath)) + " (deleted)"
	var found []loopDevice
	err = eachLoop(func(loop loopDevice, file string) error {
		if file == gone {
			found = append(found, loop)
		}
		return nil
	})
	return found, err
}

// lockPoll is how often a lock that is taken is tried again.
const lockPoll = 2 * time.Millisecond

// lockImage keeps everybody else who goes through this package, in this process or another, from
// attaching the image until unlockImage (flock(2)). The lock goes with the process.
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

// unlockImage gives the lock back. Closing alone would not do: a process that is being started elsewhere
// at this moment has a copy of every descriptor until it runs its program.
func unlockImage(guard *os.File) {
	_ = unix.Flock(int(guard.Fd()), unix.LOCK_UN) // fails only where there is no lock
	_ = guard.Close()                             // open for reading only
}

// unopened tells for certain that the file is the only one by which the image is open, loop devices
// included: then there is no need to ask them all. The kernel grants a write lease only then (fcntl(2),
// F_SETLEASE). Who opens the image in that instant waits until the lease is given back, in the next call.
func unopened(file *os.File) bool {
	fd := file.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}
