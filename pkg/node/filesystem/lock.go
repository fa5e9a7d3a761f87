package filesystem

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// lockedDevice is a block device that is locked against other tools, in this process or another.
type lockedDevice struct {
	*os.File
	turn *turn // nil unless turns are bounded
}

// udevPatience bounds the wait for a process that inspects a device, as udev does with each new one (systemd.io,
// "Locking Block Device Access"). lockPoll is how often to try the lock.
const (
	udevPatience = 10 * time.Second
	lockPoll     = 2 * time.Millisecond
)

// lockDevice opens and locks a block device. It waits for holders of a shared lock, which only inspect the device. It
// does not wait for a tool with an exclusive lock, which may work for any length of time. Kinds: Busy when the lock
// is taken; Unavailable when the device cannot be opened.
func lockDevice(ctx context.Context, path string) (*lockedDevice, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "opening %q: %w", path, err)
	}
	device := &lockedDevice{File: os.NewFile(uintptr(fd), path)}
	if err := device.lock(ctx); err != nil {
		device.unlock()
		return nil, err
	}
	return device, nil
}

// lock takes the lock once all shared locks are released.
func (d *lockedDevice) lock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, udevPatience)
	defer cancel()
	for {
		err := d.tryLock(unix.LOCK_EX)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if shared := d.tryLock(unix.LOCK_SH); shared != nil {
			return backends.Errorf(backends.Busy, "%s is locked: a tool that was started before still works on it: %w", d.Name(),
				err)
		}
		_ = unix.Flock(int(d.Fd()), unix.LOCK_UN) // taken only to check
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return backends.Errorf(backends.Busy,
				"%s is locked: somebody who looks at it has a shared lock, as udev takes it; wait for that (udevadm settle), "+
					"or stop what holds it (/proc/locks): %w", d.Name(), err)
		}
	}
}

// tryLock takes the lock if it is free. Kinds: Unavailable when the kernel refuses for another reason.
func (d *lockedDevice) tryLock(how int) error {
	err := unix.Flock(int(d.Fd()), how|unix.LOCK_NB)
	if err == nil || errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	return backends.Errorf(backends.Unavailable, "locking %s: %w", d.Name(), err)
}

// unlock releases the lock. Closing the file would not be enough: a process that is being started elsewhere at this
// moment has a copy of every descriptor until it executes its program.
func (d *lockedDevice) unlock() {
	_ = unix.Flock(int(d.Fd()), unix.LOCK_UN) // fails only if there is no lock
	_ = d.Close()                             // open for reading only
}
