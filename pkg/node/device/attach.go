package device

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// patience is the number of attempts after which attach has a new loop device created instead of using the one that the
// kernel reports as free: a device that is used without a claim is reported as free for ever.
const patience = 100

// attach connects the image to a free loop device. Other callers take free devices at the same time, so it retries
// until the context ends.
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
			return nil, backends.Errorf(backends.Unavailable, "looking for a free loop device for %q: %w", image.Name(),
				ctx.Err())
		}
	}
}

// attachFree attaches the image to the loop device that the kernel reports as free, or to a fresh one. While an image
// is being attached, its device still counts as free. If the attach hangs, as over a server that does not answer, every
// open of the same device hangs too. So attachFree claims each device before it touches it, and skips a device that is
// claimed.
func attachFree(image *os.File, opts Options, fresh bool) (*os.File, error) {
	control, err := openControl()
	if err != nil {
		return nil, err
	}
	defer control.close()
	number, err := control.free(fresh)
	if err != nil {
		return nil, err
	}
	for {
		claimed, err := control.claim(number)
		if err != nil {
			return nil, err
		}
		if claimed {
			return attachTo(number, image, opts)
		}
		if fresh {
			return nil, unix.EBUSY // another caller was told that it is free
		}
		if number, fresh, err = control.next(number); err != nil {
			return nil, err
		}
	}
}

// attachTo connects the image to the loop device of that number, which the caller has claimed.
func attachTo(number int, image *os.File, opts Options) (*os.File, error) {
	path := fmt.Sprintf("/dev/loop%d", number)
	mode := os.O_RDWR
	if opts.ReadOnly {
		mode = os.O_RDONLY
	}
	fd, err := unix.Open(path, mode|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, backends.Errorf(openKind(err),
			"opening loop device %s, whose node must be there (is /dev the host's?): %w", path, err)
	}
	node := os.NewFile(uintptr(fd), path)
	if err := configure(node, image, opts); err != nil {
		_ = node.Close() // nothing was attached
		return nil, err
	}
	return node, nil
}

// configure attaches the image with direct I/O, which avoids a second copy in the page cache. It does without if the
// filesystem below does not support direct I/O.
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
