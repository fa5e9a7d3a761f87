package device

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// loopMajor is the major number of all loop devices (Documentation/admin-guide/devices.txt).
const loopMajor = 7

// logicalBlock is the sector size of every loop device in bytes. It never depends on the disk below: a
// filesystem made with one sector size cannot be mounted on a device with a larger one.
const logicalBlock = 512

// openImage attaches an image file, or finds it attached, and opens its loop device. The image's lock is part
// of what it returns: until it is let go of nobody else attaches the image or adjusts its loop device.
func openImage(ctx context.Context, source backends.Device, opts Options) (*opened, error) {
	image, err := locateImage(source.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = image.Close() }() // O_PATH
	guard, err := lockImage(ctx, image)
	if err != nil {
		return nil, err
	}
	node, made, err := attachOnce(ctx, image, guard, opts)
	if err != nil {
		unlockImage(guard)
		return nil, err
	}
	d, err := newDevice(node, opts)
	if err != nil {
		unlockImage(guard)
		return nil, err
	}
	d.Loop = true
	return &opened{Device: d, guard: guard, made: made}, nil
}

// locateImage finds an image file. Kinds: NotFound; Invalid for a symlink or anything but a regular file.
func locateImage(path string) (*located, error) {
	image, err := locate(path, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if image.kind() != unix.S_IFREG {
		_ = image.Close() // O_PATH
		return nil, backends.Errorf(backends.Invalid, "%q is not a regular file: an image must be one, and no link to one", path)
	}
	return image, nil
}

// attachOnce returns the image's one loop device, open and set up as the options ask; made tells that it was
// attached just now.
func attachOnce(ctx context.Context, image *located, guard *os.File, opts Options) (node *os.File, made bool, err error) {
	free, err := unopened(guard)
	if err != nil {
		return nil, false, err
	}
	if !free {
		found, err := image.attached(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, loop := range found {
			node, err := reuse(loop, image, opts)
			if err != nil || node != nil {
				return node, false, err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, false, backends.Errorf(backends.Unavailable, "attaching %q: not begun: %w", image.Name(), err)
	}
	node, err = attach(ctx, image, opts)
	return node, err == nil, err
}

// reuse opens a loop device that the image was seen attached to and adjusts it; nil when it is not
// the image's any more.
func reuse(loop loopDevice, image *located, opts Options) (*os.File, error) {
	node, info, err := loop.open(opts.ReadOnly)
	if err != nil || node == nil {
		return nil, err
	}
	if !image.holds(info) {
		_ = node.Close() // only looked at
		return nil, nil
	}
	if err := adjust(node, info, image, opts); err != nil {
		_ = node.Close() // the adjustment's failure is what counts
		return nil, err
	}
	return node, nil
}

// adjust makes an attached loop device what the options ask for: how long it lives and how large it is.
func adjust(node *os.File, info *unix.LoopInfo64, image *located, opts Options) error {
	if info.Flags&unix.LO_FLAGS_READ_ONLY != 0 && !opts.ReadOnly {
		return backends.Errorf(backends.InUse, "%s holds %q for reading only: it must be detached before it can be written to", node.Name(), image.Name())
	}
	if info.Offset != 0 || info.Sizelimit != 0 {
		return backends.Errorf(backends.InUse, "%s holds a part of %q only: it must be detached before all of it can be used", node.Name(), image.Name())
	}
	if persistent := info.Flags&unix.LO_FLAGS_AUTOCLEAR == 0; persistent != opts.Persistent {
		if err := setAutoclear(node, info, !opts.Persistent); err != nil {
			return err
		}
	}
	size, err := blockSize(node)
	if err != nil {
		return err
	}
	if size/logicalBlock < image.stat.Size/logicalBlock {
		return setCapacity(node)
	}
	return nil
}

// setAutoclear says whether the loop device is to clear itself with its last use.
func setAutoclear(node *os.File, info *unix.LoopInfo64, on bool) error {
	changed := *info
	changed.Flags &^= unix.LO_FLAGS_AUTOCLEAR
	if on {
		changed.Flags |= unix.LO_FLAGS_AUTOCLEAR
	}
	if err := unix.IoctlLoopSetStatus64(int(node.Fd()), &changed); err != nil {
		return backends.Errorf(backends.Unavailable, "changing how long %s lives: %w", node.Name(), err)
	}
	return nil
}

// setCapacity makes the loop device as large as its file has become.
func setCapacity(node *os.File) error {
	if err := unix.IoctlSetInt(int(node.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return backends.Errorf(backends.Unavailable, "growing %s to the size of its image: %w", node.Name(), err)
	}
	return nil
}

// patience is how often attach takes the device that the kernel says is free before it has a new one made:
// a device that somebody claims without using it is "free" for ever.
const patience = 100

// attach connects the image to a free loop device. Others take free devices at the same time, so that
// it tries again until the context ends.
func attach(ctx context.Context, image *located, opts Options) (*os.File, error) {
	file, err := image.reopen(opts.ReadOnly)
	if err != nil {
		return nil, backends.Errorf(openKind(err), "opening image %q: %w", image.Name(), err)
	}
	defer func() { _ = file.Close() }() // the loop device has its own reference
	for attempt := 1; ; attempt++ {
		node, err := attachFree(file, opts, attempt%patience == 0)
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENXIO) {
			return node, err
		}
		if ctx.Err() != nil {
			return nil, backends.Errorf(backends.Unavailable, "looking for a free loop device for %q: %w", image.Name(), ctx.Err())
		}
	}
}

// attachFree tries the loop device that the kernel says is free, or a fresh one. While another image is being attached to a
// device that counts as free still; should that hang, as it does over a server that does not answer, whoever
// takes the same device hangs with it. So each is locked before it is used, and one that is locked is passed by.
func attachFree(image *os.File, opts Options, fresh bool) (*os.File, error) {
	number, err := freeLoop(fresh)
	if err != nil {
		return nil, err
	}
	for {
		node, locked, err := attachTo(number, image, opts)
		if !locked {
			return node, err
		}
		if fresh {
			return nil, unix.EBUSY // udev looks at it, and is done in a moment
		}
		if number, fresh, err = nextLoop(number); err != nil {
			return nil, err
		}
	}
}

// attachTo connects the image to the loop device of that number, unless it is locked.
func attachTo(number int, image *os.File, opts Options) (node *os.File, locked bool, err error) {
	path := fmt.Sprintf("/dev/loop%d", number)
	mode := os.O_RDWR
	if opts.ReadOnly {
		mode = os.O_RDONLY
	}
	fd, err := unix.Open(path, mode|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, backends.Errorf(openKind(err), "opening loop device %s, whose node must be there (is /dev the host's?): %w", path, err)
	}
	node = os.NewFile(uintptr(fd), path)
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = node.Close() // nothing was attached
		return nil, errors.Is(err, unix.EWOULDBLOCK), backends.Errorf(backends.Unavailable, "locking loop device %s: %w", path, err)
	}
	err = configure(node, image, opts)
	_ = unix.Flock(fd, unix.LOCK_UN) // fails only where there is no lock
	if err != nil {
		_ = node.Close() // nothing was attached
		return nil, false, err
	}
	return node, false, nil
}

// nextLoop returns the number of the next loop device after one that holds nothing, or of a fresh one.
func nextLoop(number int) (next int, fresh bool, err error) {
	for {
		number++
		dir := fmt.Sprintf("/sys/block/loop%d", number)
		if _, err := os.Stat(dir); err != nil {
			next, err = freeLoop(true)
			return next, true, err
		}
		if _, holds, err := attribute(dir, "loop/backing_file"); err == nil && !holds {
			return number, false, nil
		}
	}
}

// freeLoop asks for the number of a free loop device, or of one made on the spot.
func freeLoop(fresh bool) (int, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return 0, backends.Errorf(backends.Unavailable, "this node offers no loop devices (loop module, privileged container): %w", err)
	}
	defer func() { _ = control.Close() }() // a control device has nothing to write back
	if fresh {
		return addLoop(control)
	}
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return 0, backends.Errorf(backends.Exhausted, "no free loop device: %w", err)
	}
	return number, nil
}

// addLoop makes a loop device of the next number (LOOP_CTL_ADD with a negative argument).
func addLoop(control *os.File) (int, error) {
	number, _, errno := unix.Syscall(unix.SYS_IOCTL, control.Fd(), unix.LOOP_CTL_ADD, ^uintptr(0))
	if errno != 0 {
		return 0, backends.Errorf(backends.Exhausted, "no further loop device: %w", errno)
	}
	return int(number), nil
}

// configure attaches the image with direct I/O, which spares a second copy in the page cache, where the
// filesystem below can do that, and without it elsewhere.
func configure(node, image *os.File, opts Options) error {
	config := unix.LoopConfig{Fd: uint32(image.Fd()), Size: logicalBlock}
	config.Info.Flags = unix.LO_FLAGS_DIRECT_IO
	if !opts.Persistent {
		config.Info.Flags |= unix.LO_FLAGS_AUTOCLEAR
	}
	if opts.ReadOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], image.Name())
	err := unix.IoctlLoopConfigure(int(node.Fd()), &config)
	if errors.Is(err, unix.EINVAL) {
		config.Info.Flags &^= unix.LO_FLAGS_DIRECT_IO
		err = unix.IoctlLoopConfigure(int(node.Fd()), &config)
	}
	if err != nil {
		return backends.Errorf(openKind(err), "attaching %q to %s: %w", image.Name(), node.Name(), err)
	}
	return nil
}
