package filecopy

import (
	"context"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ioctl and the flags of linux/fiemap.h, and how many extents are requested at a time.
const (
	fsIocFiemap        = 0xc020660b // _IOWR('f', 11, struct fiemap)
	fiemapExtentLast   = 0x1
	fiemapExtentShared = 0x2000
	extentsAtATime     = 512
)

// fiemap is struct fiemap with room for extents.
type fiemap struct {
	start, length                  uint64
	flags, mapped, extentCount, _r uint32
	extents                        [extentsAtATime]fiemapExtent
}

type fiemapExtent struct {
	logical, physical, length uint64
	_                         [2]uint64
	flags                     uint32
	_                         [3]uint32
}

// OwnBytes returns how many bytes of a file are in blocks that it shares with no other file (ioctl FIEMAP).
func OwnBytes(ctx context.Context, file *os.File) (sum int64, err error) {
	for offset := uint64(0); ; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		request := fiemap{start: offset, length: ^uint64(0) - offset, extentCount: extentsAtATime}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), fsIocFiemap,
			uintptr(unsafe.Pointer(&request))); errno != 0 {
			return 0, &os.PathError{Op: "fiemap", Path: file.Name(), Err: errno}
		}
		for _, extent := range request.extents[:request.mapped] {
			if extent.flags&fiemapExtentShared == 0 {
				sum += int64(extent.length)
			}
			offset = extent.logical + extent.length
			if extent.flags&fiemapExtentLast != 0 {
				return sum, nil
			}
		}
		if request.mapped == 0 {
			return sum, nil
		}
	}
}
