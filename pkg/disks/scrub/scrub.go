package scrub

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/wipe"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// Path scrubs the volume at a path: the root of a mounted filesystem, or a block device. report gets the progress on a
// device in percent.
func Path(ctx context.Context, path string, report func(percent int)) error {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return fmt.Errorf("looking at %s: %w", path, err)
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		root, err := rawfile.Open(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer root.Close() //nolint:errcheck // It was only read.
		if err := isMountPoint(root); err != nil {
			return err
		}
		return directory(ctx, root)
	case unix.S_IFBLK:
		return device(ctx, path, report)
	}
	return fmt.Errorf("%s is neither a directory nor a block device: mount the volume there", path)
}

// isMountPoint refuses a directory at which nothing is mounted: its files do not belong to the volume.
func isMountPoint(dir *os.File) error {
	var stat unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, 0, &stat); err != nil {
		return fmt.Errorf("looking at %s: %w", dir.Name(), err)
	}
	if stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return fmt.Errorf("nothing is mounted at %s: mount the volume there", dir.Name())
	}
	return nil
}

// device sets every byte of a block device to zero.
func device(ctx context.Context, path string, report func(percent int)) error {
	disk, err := rawfile.Open(path, os.O_RDWR|unix.O_EXCL|unix.O_NOFOLLOW, 0) // O_EXCL: not while it is mounted.
	if err != nil {
		return err
	}
	defer disk.Close() //nolint:errcheck // Wipe has synced it.
	size, err := disk.Seek(0, 2)
	if err != nil {
		return fmt.Errorf("reading the size of %s: %w", path, err)
	}
	if size == 0 {
		return fmt.Errorf("%s has no bytes: the disk is gone", path)
	}
	d := wipe.Device{File: disk, SizeBytes: size, Note: func(position int64) error {
		report(wipe.Percent(method.Zero, position, size))
		return nil
	}}
	return d.Wipe(ctx, method.Zero, 0)
}
