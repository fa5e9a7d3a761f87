package device

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// loopMajor is the major number of all loop devices (Documentation/admin-guide/devices.txt).
const loopMajor = 7

// logicalBlock is the sector size of every loop device in bytes. It does not depend on the disk below: a filesystem
// created with one sector size cannot be mounted on a device with a larger one.
const logicalBlock = 512

// openImage attaches an image file, or finds it attached, and opens its loop device. The result holds the image's lock:
// until that is released nobody else attaches the image or adjusts its loop device.
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
	d, err := newDevice(node, node.Name(), opts)
	if err != nil {
		unlockImage(guard)
		return nil, err
	}
	d.Loop = true
	return &opened{Device: d, guard: guard, made: made}, nil
}

// locateImage finds an image file. Kinds: NotFound; Invalid for a path that is no plain path, and for a symlink or
// anything but a regular file; Unavailable.
func locateImage(path string) (*located, error) {
	image, err := locate(path, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if image.kind() != unix.S_IFREG {
		_ = image.Close() // O_PATH
		return nil, backends.Errorf(backends.Invalid, "%q is not a regular file: an image must be one, and no link to one",
			path)
	}
	return image, nil
}

// attachOnce returns the image's only loop device, open and configured as the options ask. made reports whether this
// call attached the image.
func attachOnce(ctx context.Context, image *located, guard *os.File,
	opts Options) (node *os.File, made bool, err error) {
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

// reuse opens and adjusts a loop device that was found to hold the image; nil if it no longer holds it.
func reuse(loop loopDevice, image *located, opts Options) (*os.File, error) {
	if holds, err := loop.unchanged(); err != nil || !holds {
		return nil, err
	}
	node, info, err := loop.open(opts.ReadOnly)
	if err != nil || node == nil {
		return nil, err
	}
	if !image.holds(info) {
		_ = node.Close() // only inspected
		return nil, nil
	}
	if err := adjust(node, info, image, opts); err != nil {
		_ = node.Close() // the error of the adjustment is what counts
		return nil, err
	}
	return node, nil
}

// adjust changes the lifetime and the size of an attached loop device to what the options ask for.
func adjust(node *os.File, info *unix.LoopInfo64, image *located, opts Options) error {
	if info.Flags&unix.LO_FLAGS_READ_ONLY != 0 && !opts.ReadOnly {
		return backends.Errorf(backends.InUse,
			"%s holds %q for reading only: it must be detached before it can be written to", node.Name(), image.Name())
	}
	if info.Offset != 0 || info.Sizelimit != 0 {
		return backends.Errorf(backends.InUse, "%s holds a part of %q only: it must be detached before all of it can be used",
			node.Name(), image.Name())
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

// setAutoclear sets whether the loop device is freed with its last use.
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

// setCapacity grows the loop device to the current size of its file.
func setCapacity(node *os.File) error {
	if err := unix.IoctlSetInt(int(node.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return backends.Errorf(backends.Unavailable, "growing %s to the size of its image: %w", node.Name(), err)
	}
	return nil
}
