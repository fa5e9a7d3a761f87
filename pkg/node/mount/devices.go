package mount

import (
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// FindByDevice returns where filesystems on a block device are mounted in this mount namespace, one path
// for each mount, bind mounts included. It reads all of /proc/self/mountinfo: it is for repair and for
// snapshots, not for stage and publish. Kinds: Unavailable when mountinfo cannot be read.
func FindByDevice(major, minor uint32) ([]string, error) {
	infos, err := mountinfo.GetMounts(func(info *mountinfo.Info) (skip, stop bool) {
		return !onDevice(info, major, minor), false
	})
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "listing what is mounted from device %d:%d: %w", major, minor, err)
	}
	paths := make([]string, len(infos))
	for i, info := range infos {
		paths[i] = info.Mountpoint
	}
	return paths, nil
}

// onDevice tells whether a mount is of a filesystem on the device. A btrfs has a number of its own in
// place of the device's, so that its source is looked at.
func onDevice(info *mountinfo.Info, major, minor uint32) bool {
	if info.FSType != "btrfs" {
		return info.Major == int(major) && info.Minor == int(minor)
	}
	var stat unix.Stat_t
	return unix.Stat(info.Source, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFBLK &&
		stat.Rdev == unix.Mkdev(major, minor)
}
