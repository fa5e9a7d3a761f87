package holders

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Subject is what is in use: a filesystem or a part of it, and the device that it is on.
type Subject struct {
	Major, Minor uint32 // the filesystem's device number as mountinfo has it
	// Others are the numbers (unix.Mkdev) of further devices that count as the subject, as the partitions of a disk do.
	Others []uint64
	// Root is the directory of the filesystem that the subject shows; "/" for all of it.
	Root string
	// DevicePath is the node of the block device, such as /dev/loop3; empty where there is none.
	DevicePath string
	// At is where the subject is known to be mounted: no news to who asks.
	At string
}

// OfDevice is a whole block device, mounted or not.
func OfDevice(nodePath string, major, minor uint32) Subject {
	return Subject{Major: major, Minor: minor, Root: "/", DevicePath: nodePath}
}

// OfMount is what is mounted at the path, in the mount namespace of this process; ok is false when nothing
// is, or it cannot be told.
func OfMount(at string) (s Subject, ok bool) {
	mounts, err := mountsOf("/proc/self")
	if err != nil {
		return Subject{}, false
	}
	for _, m := range mounts { // the last one is on top
		if m.Mountpoint == at {
			s, ok = Subject{Major: uint32(m.Major), Minor: uint32(m.Minor), Root: m.Root, At: at}, true
			if strings.HasPrefix(m.Source, "/dev/") {
				s.DevicePath = m.Source
			}
		}
	}
	return s, ok
}

// shows reports whether a mount shows the subject or a part of it. The filesystems of btrfs have no number of
// a device, but name it as their source.
func (s Subject) shows(m *mountinfo.Info) bool {
	same := s.has(uint32(m.Major), uint32(m.Minor)) || s.DevicePath != "" && m.Source == s.DevicePath
	return same && within(m.Root, s.Root)
}

// isNode reports whether an open file, given by its link in /proc, is the subject's device, under whatever name a
// container has it. The kernel is told not to ask any server about it (AT_STATX_DONT_SYNC, statx(2)).
func (s Subject) isNode(link string) bool {
	var x unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &x)
	return err == nil && x.Mode&unix.S_IFMT == unix.S_IFBLK && s.has(x.Rdev_major, x.Rdev_minor)
}

func (s Subject) has(major, minor uint32) bool {
	return major == s.Major && minor == s.Minor || slices.Contains(s.Others, unix.Mkdev(major, minor))
}

// within reports whether a path is the directory or below it.
func within(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(path.Clean(dir), "/")+"/")
}

// mountsOf reads the mounts that the process of a directory in /proc sees.
func mountsOf(process string) ([]*mountinfo.Info, error) {
	file, err := os.Open(process + "/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // open for reading only
	return mountinfo.GetMountsFromReader(file, nil)
}

// seesAll reports whether /proc shows the processes of the whole machine, which it does only from the first
// PID namespace. The kernel gives that one a fixed number (PID_NS_INIT_INO of linux/nsfs.h).
func seesAll() bool {
	const first = 0xEFFFFFFC
	var stat unix.Stat_t
	return unix.Stat("/proc/self/ns/pid", &stat) == nil && stat.Ino == first
}
