package filesystem

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// lockedDevice is a block device that is locked against other tools, in this process or another.
type lockedDevice struct {
	*os.File
	turn *turn // nil unless turns are bounded
}

// lockDevice opens and locks a block device. Kinds: Busy when somebody has the lock; Unavailable when the
// device cannot be opened.
func lockDevice(path string) (*lockedDevice, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "opening %q: %w", path, err)
	}
	device := &lockedDevice{File: os.NewFile(uintptr(fd), path)}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return device, nil
	}
	device.unlock()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, backends.Errorf(backends.Busy, "%s is locked: a tool that was started before still works on it: %w", path, err)
	}
	return nil, backends.Errorf(backends.Unavailable, "locking %s: %w", path, err)
}

// unlock gives the lock back. Closing alone would not do: a process that is being started elsewhere at this
// moment has a copy of every descriptor until it runs its program.
func (d *lockedDevice) unlock() {
	_ = unix.Flock(int(d.Fd()), unix.LOCK_UN) // fails only where there is no lock
	_ = d.Close()                             // open for reading only
}
