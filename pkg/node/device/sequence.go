package device

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// sequenceRequest is BLKGETDISKSEQ of Linux 5.15, _IOR(0x12, 128, __u64).
const sequenceRequest = 0x80081280

// Sequence is the number that the kernel gave to the disk, or to what a loop device shows: a fresh one each time until
// the machine starts again. It proves which device one is, as the number of the device does not, which is given out
// again. 0 where the kernel is older and cannot tell. Kinds: Unavailable.
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
