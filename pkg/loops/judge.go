package loops

import (
	"context"
	"errors"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// judge decides about the devices that did not answer. A device is skipped if two things hold, each of which is
// evidence that it does not hold the file:
//
//   - The file's own filesystem answers now, after the device did not. The device would have asked that filesystem for
//     the attributes of that file, and got them as this process does.
//   - The path of the device's file is on another filesystem. That alone is not sufficient: the path may be one of
//     another mount namespace. So a path that cannot be placed proves nothing, and neither does one on the file's own
//     filesystem.
//
// The second is not needed if the device answered with an error that says that the server of its file is gone: then the
// file's own filesystem, which answers, is another one.
//
// In all other cases the search fails: a volume that waits for an administrator is a nuisance, and one that is attached
// twice is destroyed.
func (s *search) judge(ctx context.Context) error {
	if len(s.silent) == 0 || len(s.found) > 0 {
		return nil
	}
	if err := s.fileAnswers(ctx); err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return failure.Errorf(failure.Unavailable, "cannot tell where the files of loop devices are: %w", err)
	}
	own, known := filesystemOf(s.path, mounts)
	for _, d := range s.silent {
		if serverGone(d.err) {
			continue
		}
		if other, ok := filesystemOf(d.File, mounts); !known || !ok || other == own {
			return failure.Errorf(failure.Unavailable,
				"%s, which holds %q, does not say whether that is %q under another name: %w", d.Path, d.File, s.path, d.err)
		}
	}
	return nil
}

// serverGone reports whether an error is that of a network or FUSE filesystem whose server is gone for good.
func serverGone(err error) bool {
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.ESTALE)
}

// fileAnswers asks the file's filesystem, bypassing the kernel's cache, for the attributes that a device holding the
// file would have asked for.
func (s *search) fileAnswers(ctx context.Context) error {
	return deadline.Run(ctx, deadline.Call{Name: "looking at " + s.path}, func(context.Context) error {
		var x unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, s.path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS,
			&x)
		if err != nil {
			return failure.Errorf(failure.Unavailable, "looking at %q: %w", s.path, err)
		}
		if now := (inode{unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino}); now != s.file {
			return failure.Errorf(failure.Unavailable, "%q has become another file", s.path)
		}
		return nil
	})
}

// filesystemOf returns the mount table's device number of the filesystem that a path is on. Inspecting the path would
// ask the server that does not answer, and st_dev is not sufficient, because a btrfs has one for each subvolume.
func filesystemOf(path string, mounts []*mountinfo.Info) (dev uint64, ok bool) {
	path = strings.TrimSuffix(path, Deleted)
	longest := -1
	for _, m := range mounts {
		if len(m.Mountpoint) >= longest && within(m.Mountpoint, path) { // of several mounts at one place the last is on top
			longest, dev, ok = len(m.Mountpoint), unix.Mkdev(uint32(m.Major), uint32(m.Minor)), true
		}
	}
	return dev, ok
}

func within(dir, path string) bool {
	return dir == "/" && strings.HasPrefix(path, "/") || dir == path || strings.HasPrefix(path, dir+"/")
}
