package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Detach frees all loop devices of an image and returns once they are free; an image that has none, or
// that is not there, is no error. Kinds: InUse, naming the loop device, when one is mounted or open;
// Unavailable when the context ends first: what was asked of the kernel then may still come about.
func Detach(ctx context.Context, imagePath string) error {
	return deadline.Run(ctx, deadline.Call{Name: fmt.Sprintf("detaching %q", imagePath), On: onImage(imagePath), Grace: lastWords}, func(ctx context.Context) error {
		found, err := loopsOf(ctx, imagePath)
		if err != nil {
			return err
		}
		for _, loop := range found {
			if err := loop.detach(ctx); err != nil {
				return backends.Errorf(backends.KindOf(err), "detaching %q: %w", imagePath, err)
			}
		}
		return nil
	})
}

// DetachDevice frees the loop device of that number, whatever it holds: for those whose image is gone.
// One that holds nothing, or that does not exist, is no error.
// Kinds: Invalid when the number is not a loop device's; otherwise as Detach.
func DetachDevice(ctx context.Context, major, minor uint32) error {
	return detachDevice(ctx, deadline.Call{Name: fmt.Sprintf("detaching device %d:%d", major, minor), Grace: lastWords}, major, minor)
}

// DetachFrom is DetachDevice for an image that is known to be attached to that loop device, which spares
// looking at all of them. Kinds: as DetachDevice.
func DetachFrom(ctx context.Context, imagePath string, major, minor uint32) error {
	call := deadline.Call{Name: fmt.Sprintf("detaching %q from device %d:%d", imagePath, major, minor), On: onImage(imagePath), Grace: lastWords}
	return detachDevice(ctx, call, major, minor)
}

// onImage is what opening and detaching an image exclude. A detaching that was given up may yet take place: the
// image must not be opened, and found attached, until that is settled, or a device that was handed out raw
// would be taken away and its number given to another image.
func onImage(imagePath string) string { return "image " + imagePath }

func detachDevice(ctx context.Context, call deadline.Call, major, minor uint32) error {
	if major != loopMajor {
		return backends.Errorf(backends.Invalid, "device %d:%d is not a loop device: their major number is %d", major, minor, loopMajor)
	}
	return deadline.Run(ctx, call, func(ctx context.Context) error {
		path, err := nodePath(major, minor)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return loopDevice{path}.detach(ctx)
	})
}

// detachPatience bounds how long Detach waits for those who only take a look at a device, such as
// udev's probes; detachPoll is how often it looks.
const (
	detachPatience = time.Second
	detachPoll     = 2 * time.Millisecond
)

// detach frees the loop device. While others have it open the kernel only promises to free it with
// their last close (LOOP_CLR_FD, loop(4)): such a promise is taken back.
func (l loopDevice) detach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, detachPatience)
	defer cancel()
	tick := time.NewTicker(detachPoll)
	defer tick.Stop()
	before, err := l.clearOnceFree(ctx, tick.C)
	if err != nil || before == nil {
		return err
	}
	for {
		gone, err := l.gone(before)
		if err != nil || gone {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return l.restore(before)
		}
	}
}

// clearOnceFree is clear that waits while the device is claimed. A mount that was taken down is out of
// everybody's sight before the kernel has written its filesystem back and let go of the device; so it is
// after an unmount that was given up at its deadline and goes on.
func (l loopDevice) clearOnceFree(ctx context.Context, tick <-chan time.Time) (*unix.LoopInfo64, error) {
	for {
		before, err := l.clear(ctx)
		if !errors.Is(err, unix.EBUSY) {
			return before, err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// clear asks the kernel to free the loop device and returns what it held; nil when it held nothing.
// A device that is mounted, or claimed in another way, is left alone.
func (l loopDevice) clear(ctx context.Context) (*unix.LoopInfo64, error) {
	node, before, err := l.open(true)
	if err != nil || node == nil {
		return nil, err
	}
	defer func() { _ = node.Close() }() // open for reading only
	claim, err := unix.Open(l.path, unix.O_RDONLY|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, backends.Errorf(backends.InUse, "%s is mounted or claimed by another device: %w", l.path, err)
	}
	if err != nil {
		return nil, backends.Errorf(openKind(err), "claiming %s: %w", l.path, err)
	}
	_ = unix.Close(claim) // it was a question only
	if err := ctx.Err(); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "freeing %s: not begun: %w", l.path, err)
	}
	err = unix.IoctlSetInt(int(node.Fd()), unix.LOOP_CLR_FD, 0)
	switch {
	case err == nil:
		return before, nil
	case errors.Is(err, unix.ENXIO):
		return nil, nil
	}
	return nil, backends.Errorf(openKind(err), "freeing %s: %w", l.path, err)
}

// gone tells whether the loop device no longer holds what it held before.
func (l loopDevice) gone(before *unix.LoopInfo64) (bool, error) {
	node, now, err := l.open(true)
	if err != nil || node == nil {
		return err == nil, err
	}
	return now.Device != before.Device || now.Inode != before.Inode, node.Close()
}

// restore takes the kernel's promise back where the loop device was to stay until it is detached, and
// says that it is in use.
func (l loopDevice) restore(before *unix.LoopInfo64) error {
	node, now, err := l.open(true)
	if err != nil || node == nil {
		return err
	}
	defer func() { _ = node.Close() }() // open for reading only
	if before.Flags&unix.LO_FLAGS_AUTOCLEAR == 0 && now.Inode == before.Inode && now.Device == before.Device {
		if err := setAutoclear(node, now, false); err != nil {
			return err
		}
	}
	return backends.Errorf(backends.InUse, "%s is open: stop what uses it", l.path)
}

// Refresh makes the kernel look at the size of a device again and returns it in bytes: a loop device
// takes over the size that its image has now. Kinds: Invalid when the path is no block device; NotFound;
// Unavailable when the device does not answer, or not before the context ends.
func Refresh(ctx context.Context, devicePath string) (sizeBytes int64, err error) {
	call := deadline.Call{Name: fmt.Sprintf("asking %q for its size", devicePath)}
	return deadline.Do(ctx, call, func(context.Context) (int64, error) { return refresh(devicePath) }, nil)
}

func refresh(devicePath string) (sizeBytes int64, err error) {
	plain, err := safepath.Absolute(devicePath)
	if err != nil {
		return 0, err
	}
	found, err := locate(plain, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = found.Close() }() // O_PATH
	if found.kind() != unix.S_IFBLK {
		return 0, backends.Errorf(backends.Invalid, "%q is not a block device", plain)
	}
	node, err := found.reopen(true)
	if err != nil {
		return 0, backends.Errorf(openKind(err), "opening %q: %w", plain, err)
	}
	defer func() { _ = node.Close() }() // open for reading only
	if unix.Major(found.stat.Rdev) == loopMajor {
		if err := setCapacity(node); err != nil {
			return 0, err
		}
	}
	return blockSize(node)
}
