package tree

import (
	"context"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// On a btrfs, anybody may create subvolumes in his directory, and snapshots of them that are read-only. Nothing but
// another subvolume can be moved out of one (rename(2), EXDEV).
const (
	subvolumeRoot = 256 // BTRFS_FIRST_FREE_OBJECTID: the inode number of each subvolume's root
	// The ioctls of linux/btrfs.h, and their flag BTRFS_SUBVOL_RDONLY.
	getSubvolumeFlags = 0x80089419 // _IOR(0x94, 25, __u64)
	setSubvolumeFlags = 0x4008941a // _IOW(0x94, 26, __u64)
	readOnlySubvolume = 1 << 1
)

// isSubvolume reports whether an open directory is the root of a btrfs subvolume.
func isSubvolume(dir *os.File) (bool, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil || stat.Ino != subvolumeRoot {
		return false, err
	}
	var of unix.Statfs_t
	err := unix.Fstatfs(int(dir.Fd()), &of)
	return of.Type == unix.BTRFS_SUPER_MAGIC, err
}

// MakeWritable makes an open directory writable if it is the root of a read-only subvolume.
func MakeWritable(dir *os.File) error {
	subvolume, err := isSubvolume(dir)
	if err != nil || !subvolume {
		return err
	}
	return makeWritable(dir)
}

// makeWritable makes a subvolume writable.
func makeWritable(dir *os.File) error {
	var flags uint64
	if err := subvolumeFlags(dir, getSubvolumeFlags, &flags); err != nil || flags&readOnlySubvolume == 0 {
		return err
	}
	flags &^= readOnlySubvolume
	return subvolumeFlags(dir, setSubvolumeFlags, &flags)
}

func subvolumeFlags(dir *os.File, request uintptr, flags *uint64) error {
	_, _, failed := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), request, uintptr(unsafe.Pointer(flags)))
	if failed != 0 {
		return &os.PathError{Op: "make the subvolume writable", Path: dir.Name(), Err: failed}
	}
	return nil
}

// subvolume removes the contents of a subvolume. Its directories can be moved up to its root only. The subvolumes in it
// are moved up beside the top: a chain of them would have too many directories open.
func (r *remover) subvolume(ctx context.Context, dir *os.File) error {
	inner := &remover{top: dir, name: r.name, count: r.count, outer: r}
	return r.each(dir, func(entry string) error { return inner.tree(ctx, entry) })
}
