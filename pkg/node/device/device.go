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
)

// Device is a proven block device that is held open.
type Device struct {
	File         *os.File // open for reading, and for writing unless ReadOnly
	Path         string   // its node, such as /dev/loop3 or /dev/nvme1n1; never a link
	Major, Minor uint32
	SizeBytes    int64
	ReadOnly     bool // the device itself refuses writes, or it was asked for read-only
	Loop         bool // a loop device for an image that Open attached or found attached
}

// Options say how to open a device.
type Options struct {
	// ReadOnly opens the device for reading. An image that is not attached yet gets a loop device that refuses writes.
	ReadOnly bool
	// Persistent keeps an image's loop device until Detach. Otherwise its last use frees it.
	Persistent bool
	// Opened, unless nil, is called with the device once it is open and before it is proven, so that the kernel can begin
	// to read what will be inspected afterwards. It must not wait, and must not keep the file.
	Opened func(device *os.File, sizeBytes int64)
}

// Open finds the device, attaching it when it is an image, proves that it is the right one and returns it open. It
// fails closed: an identity that cannot be read counts as wrong.
//
// Kinds: Invalid when the path is unusable, leads to something other than a block device or an image file, or the image
// is smaller than it must be; NotFound for an image that is not there, and for a path below a file; Denied when the
// kernel does not let this process open the device or the image, as for writing to a read-only one; InUse when the
// image is attached in a way that does not fit, or the kernel refuses a further user of the device; Exhausted when no
// loop device is free and none can be added; Busy while another caller attaches the image; Unavailable for a device
// that is not there yet, that has another serial number or a smaller size, or whose identity cannot be read: all of
// these may change in a moment; Unavailable also when the node offers no loop devices, or the kernel refuses for
// another reason.
//
// It returns by the end of the context, with Unavailable. If an operation that hangs then succeeds after all, its
// attachment is undone.
func Open(ctx context.Context, source backends.Device, opts Options) (*Device, error) {
	call := deadline.Call{Name: fmt.Sprintf("opening device %q", source.Path), On: onImage(source.Path), Grace: lastWords}
	o, err := deadline.Do(ctx, call, func(ctx context.Context) (*opened, error) { return openProven(ctx, source, opts) },
		(*opened).undo)
	if err != nil {
		return nil, err
	}
	o.unlock()
	return o.Device, nil
}

// lastWords is how long after the end of the context a call may take to report what it was waiting for.
const lastWords = 100 * time.Millisecond

// opened is an open device before Open returns it.
type opened struct {
	*Device
	guard *os.File // holds the lock of an image; nil for another device
	made  bool     // this call attached the image
}

// openProven is Open without a deadline.
func openProven(ctx context.Context, source backends.Device, opts Options) (*opened, error) {
	find := openNode
	if source.Image {
		find = openImage
	}
	o, err := find(ctx, source, opts)
	if err != nil {
		return nil, err
	}
	if err := o.prove(source); err != nil {
		o.undo()
		return nil, err
	}
	return o, nil
}

// undo closes the device and removes a loop device that was set up for it. The image stays locked until then, so that
// no other caller finds the loop device and relies on it.
func (o *opened) undo() {
	if o.made {
		if info, err := unix.IoctlLoopGetStatus64(int(o.File.Fd())); err == nil {
			_ = setAutoclear(o.File, info, true) // a failure leaves the same as a kill, and Detach finds it
		}
	}
	_ = o.Close() // nothing was written
	o.unlock()
}

// unlock releases the lock of an image.
func (o *opened) unlock() {
	if o.guard != nil {
		unlockImage(o.guard)
	}
}

// Close closes the device. That frees a loop device that has no other users, unless it is persistent.
func (d *Device) Close() error { return d.File.Close() }

// Number returns the device number as in st_rdev and in the st_dev of a filesystem on it.
func (d *Device) Number() uint64 { return unix.Mkdev(d.Major, d.Minor) }

// openNode opens a device node, or the target of a link such as one in /dev/disk/by-id.
func openNode(_ context.Context, source backends.Device, opts Options) (*opened, error) {
	found, err := locate(source.Path, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, backends.Errorf(backends.Unavailable, "device %q is not there (yet): %w", source.Path, err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }() // O_PATH
	if found.kind() != unix.S_IFBLK {
		return nil, backends.Errorf(backends.Invalid, "%q is not a block device", source.Path)
	}
	path, err := nodePath(unix.Major(found.stat.Rdev), unix.Minor(found.stat.Rdev))
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "looking at device %q: %w", source.Path, err)
	}
	file, err := found.reopen(opts.ReadOnly)
	if err != nil {
		return nil, backends.Errorf(openKind(err), "opening device %q: %w", source.Path, err)
	}
	d, err := newDevice(file, path, opts)
	return &opened{Device: d}, err
}

// newDevice creates a Device from an open node, which it takes over. path is the node's path, which is no link.
func newDevice(file *os.File, path string, opts Options) (*Device, error) {
	var stat unix.Stat_t
	err := unix.Fstat(int(file.Fd()), &stat)
	if err == nil {
		d := &Device{File: file, Path: path, Major: unix.Major(stat.Rdev), Minor: unix.Minor(stat.Rdev),
			ReadOnly: opts.ReadOnly}
		if d.SizeBytes, err = blockSize(file); err == nil {
			opts.tell(d)
			return d, nil
		}
	}
	_ = file.Close() // the earlier error is what counts
	return nil, backends.Errorf(backends.Unavailable, "looking at device %q: %w", path, err)
}

// tell calls Opened with an open device.
func (o Options) tell(d *Device) {
	if o.Opened != nil {
		o.Opened(d.File, d.SizeBytes)
	}
}

// SizeOf returns the size in bytes of an open block device (BLKGETSIZE64, ioctl_list(2)) or regular
// file. Kinds: Invalid for anything else; Unavailable when the size cannot be read.
func SizeOf(f *os.File) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return 0, backends.Errorf(backends.Unavailable, "looking at %q: %w", f.Name(), err)
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return stat.Size, nil
	case unix.S_IFBLK:
		return blockSize(f)
	}
	return 0, backends.Errorf(backends.Invalid, "%q is neither a block device nor a file: it has no size", f.Name())
}

// SetReadAhead sets how far the kernel reads ahead on a device, in KiB, as shown in /sys/block/*/queue/read_ahead_kb.
// It uses BLKRASET, which works even if /sys is read-only. Kinds: Invalid for a negative number or one above 1 GiB;
// Unavailable when the kernel refuses.
func SetReadAhead(d *Device, kib int) error {
	if kib < 0 || kib > maxReadAheadKiB {
		return backends.Errorf(backends.Invalid, "a read-ahead of %d KiB is not possible: use 0 to %d", kib, maxReadAheadKiB)
	}
	const sectorsPerKiB = 2
	if err := unix.IoctlSetInt(int(d.File.Fd()), unix.BLKRASET, kib*sectorsPerKiB); err != nil {
		return backends.Errorf(backends.Unavailable, "setting the read-ahead of %s to %d KiB: %w", d.Path, kib, err)
	}
	return nil
}

// ResetReadAhead gives a loop device the read-ahead of a new one: twice the optimal request size, and at least 128 KiB
// (block/blk-settings.c). A loop device keeps a larger value that was set for an earlier image. Kinds: as SetReadAhead.
func ResetReadAhead(d *Device) error {
	optimal, err := unix.IoctlGetUint32(int(d.File.Fd()), unix.BLKIOOPT)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "asking %s for the optimal size of its requests: %w", d.Path, err)
	}
	const least = 128
	return SetReadAhead(d, max(least, int(2*(optimal/1024))))
}

// maxReadAheadKiB is 1 GiB, far more than is of use to any device.
const maxReadAheadKiB = 1 << 20

// openKind maps the errors of opening a device node to Kinds.
func openKind(err error) backends.Kind {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return backends.Denied
	case errors.Is(err, unix.EBUSY):
		return backends.InUse
	}
	return backends.Unavailable
}

// String formats the device for messages.
func (d *Device) String() string { return fmt.Sprintf("%s (%d:%d)", d.Path, d.Major, d.Minor) }
