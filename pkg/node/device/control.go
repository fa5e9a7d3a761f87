package device

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// control is /dev/loop-control (loop(4)), opened to take one free loop device.
type control struct{ *os.File }

// openControl opens the control device. Kinds: Unavailable.
func openControl() (control, error) {
	file, err := rawfile.Open("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return control{}, backends.Errorf(backends.Unavailable,
			"this node offers no loop devices (loop module, privileged container): %w", err)
	}
	return control{file}, nil
}

// close releases all claims. Closing the file would not be enough: a process that is being started elsewhere at this
// moment has a copy of every descriptor until it executes its program.
func (c control) close() {
	_ = c.lock(unix.F_UNLCK, 0, 0) // of all numbers; fails only if there is no lock
	_ = c.Close()                  // a control device has nothing to write back
}

// claim keeps all other users of this package, in this process and in others that see the same /dev, from touching the
// loop device of that number. The claim is a lock on the byte of that number in the control device (F_OFD_SETLK,
// fcntl(2)), which ends with the process. A lock on the device itself could only be taken once the device is open.
// Kinds: Unavailable.
func (c control) claim(number int) (bool, error) {
	err := c.lock(unix.F_WRLCK, int64(number), 1)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, backends.Errorf(backends.Unavailable, "claiming loop device %d: %w", number, err)
	}
	return true, nil
}

func (c control) lock(kind int16, start, length int64) error {
	return unix.FcntlFlock(c.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: unix.SEEK_SET, Start: start,
		Len: length})
}

// free returns the number of a free loop device, or of a new one if fresh. Kinds: Exhausted.
func (c control) free(fresh bool) (int, error) {
	if fresh {
		return c.add()
	}
	number, err := unix.IoctlRetInt(int(c.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return 0, backends.Errorf(backends.Exhausted, "no free loop device: %w", err)
	}
	return number, nil
}

// add creates a loop device with the next number (LOOP_CTL_ADD with a negative argument). Kinds: Exhausted.
func (c control) add() (int, error) {
	number, _, errno := unix.Syscall(unix.SYS_IOCTL, c.Fd(), unix.LOOP_CTL_ADD, ^uintptr(0))
	if errno != 0 {
		return 0, backends.Errorf(backends.Exhausted, "no further loop device: %w", errno)
	}
	return int(number), nil
}

// next returns the number of the next empty loop device after number, or of a fresh one. Kinds: Exhausted.
func (c control) next(number int) (next int, fresh bool, err error) {
	for {
		number++
		dir := fmt.Sprintf("/sys/block/loop%d", number)
		if _, err := os.Stat(dir); err != nil {
			next, err = c.add()
			return next, true, err
		}
		if _, holds, err := attribute(dir, "loop/backing_file"); err == nil && !holds {
			return number, false, nil
		}
	}
}
