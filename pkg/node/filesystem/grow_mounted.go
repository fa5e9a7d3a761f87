package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// The ioctls that grow mounted filesystems (linux/btrfs.h, linux/ext4.h, xfsprogs' xfs_fs.h).
const (
	btrfsDevInfo  = 0xd000941e // _IOWR(0x94, 30, struct btrfs_ioctl_dev_info_args)
	btrfsResize   = 0x50009403 // _IOW(0x94, 3, struct btrfs_ioctl_vol_args)
	ext4Resize    = 0x40086610 // _IOW('f', 16, __u64)
	xfsGeometryV1 = 0x80705864 // _IOR('X', 100, struct xfs_fsop_geom_v1)
	xfsGrowData   = 0x4010586e // _IOW('X', 110, struct xfs_growfs_data)
)

// GrowMounted grows a mounted filesystem to fill its device, by the ioctl of the filesystem. A filesystem that fills it
// already is left unchanged. The kernel completes the work even if the context ends first; until then no other call for
// the device at the mountpoint begins.
//
// Kinds: Denied when CAP_SYS_RESOURCE is missing, without which the kernel grows no mounted ext filesystem, when
// another capability is missing, and when the filesystem is read-only; OutOfRange for a btrfs that would remain too
// small to be resized; Invalid when the type does not grow, or devicePath leads to neither a device nor a file;
// NotFound; Unavailable when the mount or the device does not answer, when the mount is not of the device (any more),
// and when the context ended; Busy when the kernel is growing it for another process; Unknown when it refuses.
func GrowMounted(ctx context.Context, mountpoint, devicePath, fsType string) error {
	if !makes(fsType) {
		return backends.Errorf(backends.Invalid, "filesystem type %q does not grow", fsType)
	}
	return deadline.Run(ctx, growth(mountpoint, devicePath), func(ctx context.Context) error {
		return growMounted(ctx, mountpoint, devicePath, fsType)
	})
}

// Grown returns once no GrowMounted of a device's filesystem at the mountpoint is under way: a GrowMounted keeps the
// mount open. Kinds: Unavailable when one that was given up has not ended, as on a frozen filesystem, or the context
// ends first.
func Grown(ctx context.Context, mountpoint, devicePath string) error {
	return deadline.Run(ctx, growth(mountpoint, devicePath), func(context.Context) error { return nil })
}

// growth returns the call that grows the filesystem on a device. After the disk of one volume went, the disk of another
// may have its path, but not its mountpoint.
func growth(mountpoint, devicePath string) deadline.Call {
	return deadline.Call{Name: fmt.Sprintf("growing the filesystem at %q", mountpoint),
		On: fmt.Sprintf("filesystem on %s at %q", devicePath, mountpoint)}
}

func growMounted(ctx context.Context, mountpoint, devicePath, fsType string) error {
	root, err := openAt(mountpoint, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // open for reading only
	node, err := openAt(devicePath, unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // open for reading only
	size, err := device.SizeOf(node)
	if err != nil {
		return err
	}
	if fsType == "btrfs" {
		return growBtrfs(root, size)
	}
	if err := sameDevice(root, node); err != nil {
		return err
	}
	if fsType == "xfs" {
		return growXFS(root, size)
	}
	return growExt(ctx, root, node, size)
}

func openAt(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, backends.Errorf(backends.NotFound, "opening %q: %w", path, err)
	}
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "opening %q: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// sameDevice checks that a mounted filesystem is on the device.
func sameDevice(root, node *os.File) error {
	var mounted, block unix.Stat_t
	if err := errors.Join(unix.Fstat(int(root.Fd()), &mounted), unix.Fstat(int(node.Fd()), &block)); err != nil {
		return backends.Errorf(backends.Unavailable, "looking at %q and %q: %w", root.Name(), node.Name(), err)
	}
	if mounted.Dev != block.Rdev {
		return backends.Errorf(backends.Unavailable, "the filesystem at %q is on device %d:%d, not on %s (%d:%d)",
			root.Name(), unix.Major(mounted.Dev), unix.Minor(mounted.Dev), node.Name(), unix.Major(block.Rdev),
			unix.Minor(block.Rdev))
	}
	return nil
}

// btrfsFirst is the ID of the only device of a filesystem that Format created.
const btrfsFirst = 1

// growBtrfs grows the part on the first device.
func growBtrfs(root *os.File, size int64) error {
	info := struct {
		id          uint64
		uuid        [16]byte
		used, total uint64
		_           [379]uint64
		_           [1024]byte
	}{id: btrfsFirst}
	if err := ioctl(root, btrfsDevInfo, unsafe.Pointer(&info)); err != nil {
		return backends.Errorf(backends.Unavailable, "asking the btrfs at %q for its size: %w", root.Name(), err)
	}
	const sector = 4096
	if uint64(size/sector*sector) <= info.total {
		return nil
	}
	if size < btrfsLeastResize {
		return backends.Errorf(backends.OutOfRange,
			"the btrfs at %q cannot grow to %d bytes: the kernel resizes none below %d", root.Name(), size, btrfsLeastResize)
	}
	var args struct {
		fd   int64
		name [4088]byte
	}
	copy(args.name[:], "max")
	return growFailure(root, ioctl(root, btrfsResize, unsafe.Pointer(&args)))
}

// growExt grows ext2, ext3 and ext4; the kernel omits a last group that would be too small. The ioctl needs a
// capability even if there is nothing to grow, as after a stage that grew the filesystem.
func growExt(ctx context.Context, root, node *os.File, size int64) error {
	if found, err := Probe(ctx, node, size); err != nil || isExt(found.Type) && !NeedsGrow(found, size) {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(root.Fd()), &fs); err != nil || fs.Bsize <= 0 {
		return backends.Errorf(backends.Unavailable, "asking %q for its block size: %w", root.Name(), err)
	}
	blocks := uint64(size / fs.Bsize)
	err := ioctl(root, ext4Resize, unsafe.Pointer(&blocks))
	if errors.Is(err, unix.EPERM) {
		return backends.Errorf(backends.Denied,
			"growing the mounted ext filesystem at %q needs the capability CAP_SYS_RESOURCE, which this process lacks: "+
				"it will be grown when the volume is next staged: %w", root.Name(), err)
	}
	return growFailure(root, err)
}

// xfsGeometry is struct xfs_fsop_geom_v1.
type xfsGeometry struct {
	BlockSize, RTExtSize, AGBlocks, AGCount, LogBlocks, SectSize, INodeSize, IMaxPct uint32
	DataBlocks, RTBlocks, RTExtents, LogStart                                        uint64
	UUID                                                                             [16]byte
	SUnit, SWidth                                                                    uint32
	Version                                                                          int32
	Flags, LogSectSize, RTSectSize, DirBlockSize                                     uint32
}

// growXFS grows the data section. The kernel omits a last allocation group that would be too small.
func growXFS(root *os.File, size int64) error {
	var geometry xfsGeometry
	if err := ioctl(root, xfsGeometryV1, unsafe.Pointer(&geometry)); err != nil || geometry.BlockSize == 0 {
		return backends.Errorf(backends.Unavailable, "asking the xfs at %q for its geometry: %w", root.Name(), err)
	}
	grow := struct {
		blocks  uint64
		iMaxPct uint32
		_       uint32
	}{blocks: uint64(size) / uint64(geometry.BlockSize), iMaxPct: geometry.IMaxPct}
	if grow.blocks <= geometry.DataBlocks {
		return nil
	}
	return growFailure(root, ioctl(root, xfsGrowData, unsafe.Pointer(&grow)))
}

func growFailure(root *os.File, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return backends.Errorf(backends.Denied, "growing the filesystem at %q: %w", root.Name(), err)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EBUSY):
		return backends.Errorf(backends.Busy, "growing the filesystem at %q: somebody else is growing it: %w", root.Name(),
			err)
	}
	return backends.Errorf(backends.Unknown, "growing the filesystem at %q: %w", root.Name(), err)
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
