package mount

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// forget has the kernel forget that a device was a part of an unmounted btrfs on several devices, which may be long
// gone. The kernel remembers the device by its number, and a later device may get the same number. If that holds a
// clone of a mounted btrfs, the kernel adds it to the remembered filesystem: it compares numbers before it compares
// UUIDs. The mount then fails, or opens the other devices (find_fsid_by_device in fs/btrfs/volumes.c).
//
// The kernel forgets only this device, and nothing of a mounted filesystem (EBUSY). The caller has read from the device
// that its filesystem is on no other, so no filesystem needs what is forgotten. The mount below registers it again.
//
// A failure is no reason to leave out the mount, which needs this only rarely.
func (fs *Filesystem) forget() error {
	if fs.Type != "btrfs" || fs.Dev == 0 {
		return nil
	}
	control, err := rawfile.Open("/dev/btrfs-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }() // a control device has nothing to write back
	return forgetDevice(control, fs.Source)
}

// volumeArgs is struct btrfs_ioctl_vol_args of linux/btrfs.h.
type volumeArgs struct {
	_    int64
	name [4088]byte // ends with a zero byte
}

func forgetDevice(control *os.File, path string) error {
	const forgetDev = 0x50009405 // BTRFS_IOC_FORGET_DEV: _IOW(0x94, 5, struct btrfs_ioctl_vol_args)
	var args volumeArgs
	if path == "" || len(path) >= len(args.name) {
		return unix.ENAMETOOLONG // An empty name would stand for all devices.
	}
	copy(args.name[:], path)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, control.Fd(), forgetDev, uintptr(unsafe.Pointer(&args)))
	switch errno {
	case 0, unix.EBUSY, unix.ENOENT: // mounted; not remembered
		return nil
	}
	return os.NewSyscallError("BTRFS_IOC_FORGET_DEV", errno)
}

// confusion explains why the kernel refuses a btrfs because of other devices; an empty string otherwise.
func (c *fscontext) confusion(err error) string {
	switch {
	case c.fs.Type != "btrfs" || c.fs.Dev == 0:
		return ""
	case errors.Is(err, unix.ENOENT):
		return "; its contents may name other devices, which are no part of this volume" + c.notForgotten()
	case !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.EBUSY):
		return c.notForgotten()
	}
	return "; the kernel has mounted or remembers another device with the same btrfs, as of a clone and its original: " +
		"unmount that one first, have it forgotten (btrfs device scan --forget DEVICE), or use Linux 6.7 or newer, which " +
		"helps with all but seed filesystems" + c.notForgotten()
}

// notForgotten says why the kernel may still take the device for a part of another btrfs.
func (c *fscontext) notForgotten() string {
	if c.unforgotten == nil {
		return ""
	}
	return "; the kernel may take " + c.fs.Source + " for a part of an earlier btrfs, because it could not be told to " +
		"forget that: " + c.unforgotten.Error()
}
