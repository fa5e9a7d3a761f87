package freeze

import (
	"fmt"
	"os"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// open opens a directory of the filesystem. A place where something else has been mounted over it, which
// a path would lead to, is told by the mount's ID (statx(2), Linux 5.8).
func (f Filesystem) open() (*os.File, error) {
	for _, m := range f.mounts {
		dir, err := os.OpenFile(m.path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // The next one may do; when none does, the error below tells.
		}
		if id, err := mountID(dir); err == nil && id == m.id {
			return dir, nil
		}
		closeQuietly(dir)
	}
	return nil, fmt.Errorf("none of the %d mounts of device %d:%d can be opened here: %w",
		len(f.mounts), unix.Major(f.Device), unix.Minor(f.Device), os.ErrNotExist)
}

func mountID(file *os.File) (uint64, error) {
	var stat unix.Statx_t
	err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat)
	return stat.Mnt_id, err
}

// On reports whether the path is on one of the filesystems: who freezes them must not write there.
func On(path string, filesystems []Filesystem) (bool, error) {
	dir, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer closeQuietly(dir)
	id, err := mountID(dir)
	if err != nil {
		return false, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return false, err
	}
	for _, m := range mounts {
		if uint64(m.ID) == id {
			return contains(filesystems, unix.Mkdev(uint32(m.Major), uint32(m.Minor))), nil
		}
	}
	return false, fmt.Errorf("the mount of %s is not among this node's mounts: %w", path, os.ErrNotExist)
}

func contains(filesystems []Filesystem, device uint64) bool {
	for _, f := range filesystems {
		if f.Device == device {
			return true
		}
	}
	return false
}
