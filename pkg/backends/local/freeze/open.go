package freeze

import (
	"fmt"
	"os"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// open opens a directory of the filesystem. The mount's ID (statx(2), Linux 5.8) reveals a path that another mount
// covers. The filesystem was found by the number of its loop device, and the number may have been given to another
// image before. The open directory keeps the loop device in use. If that still has its sequence number, it has held the
// image since it was found. Kinds: Unavailable when it has not.
func (f Filesystem) open() (*os.File, error) {
	for _, m := range f.mounts {
		dir, err := os.OpenFile(m.path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // Try the next one; the error below covers the case that none works.
		}
		if id, err := mountID(dir); err == nil && id == m.id {
			return f.checked(dir)
		}
		closeQuietly(dir)
	}
	return nil, fmt.Errorf("none of the %d mounts of device %d:%d can be opened here: %w",
		len(f.mounts), unix.Major(f.Device), unix.Minor(f.Device), os.ErrNotExist)
}

// checked returns an open directory of the filesystem if its loop device still holds the image.
func (f Filesystem) checked(dir *os.File) (*os.File, error) {
	if err := f.on.check(); err != nil {
		closeQuietly(dir)
		return nil, err
	}
	return dir, nil
}

func mountID(file *os.File) (uint64, error) {
	var stat unix.Statx_t
	err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat)
	return stat.Mnt_id, err
}

// Device returns the device number of the path's filesystem, in the form of Filesystem.Device. While that filesystem is
// frozen, the path must not be written to.
func Device(path string) (uint64, error) {
	dir, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer closeQuietly(dir)
	id, err := mountID(dir)
	if err != nil {
		return 0, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return 0, err
	}
	for _, m := range mounts {
		if uint64(m.ID) == id {
			return unix.Mkdev(uint32(m.Major), uint32(m.Minor)), nil
		}
	}
	return 0, fmt.Errorf("the mount of %s is not among this node's mounts: %w", path, os.ErrNotExist)
}
