package device

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// sequenceRequest is BLKGETDISKSEQ of Linux 5.15, _IOR(0x12, 128, __u64).
const sequenceRequest = 0x80081280

// Sequence returns the number that the kernel gave to the disk, or to the current file of a loop device. It is unique
// until the machine reboots. It identifies a device, unlike the device number, which is reused. It is 0 if the kernel
// is too old. Kinds: Unavailable.
func Sequence(dev *os.File) (sequence uint64, err error) {
	_, _, failed := unix.Syscall(unix.SYS_IOCTL, dev.Fd(), sequenceRequest, uintptr(unsafe.Pointer(&sequence)))
	switch failed {
	case 0:
		return sequence, nil
	case unix.ENOTTY, unix.EINVAL: // An unknown request.
		return 0, nil
	}
	return 0, backends.Errorf(backends.Unavailable, "asking for the sequence number of %s: %w", dev.Name(), failed)
}
