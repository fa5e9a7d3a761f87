package holders

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Subject is what is in use: a filesystem or a part of it, and its device.
type Subject struct {
	Major, Minor uint32 // the filesystem's device number as mountinfo has it
	// Others are the numbers (unix.Mkdev) of further devices that count as the subject, such as the partitions of a disk.
	Others []uint64
	// Root is the directory of the filesystem that the subject shows; "/" for all of it.
	Root string
	// DevicePath is the node of the block device, such as /dev/loop3; empty for none.
	DevicePath string
	// At is where the caller knows the subject to be mounted. That mount is not reported.
	At string
}

// OfDevice returns the Subject of a whole block device, mounted or not.
func OfDevice(nodePath string, major, minor uint32) Subject {
	return Subject{Major: major, Minor: minor, Root: "/", DevicePath: nodePath}
}

// OfMount returns the Subject of the mount at the path, in the mount namespace of this process; ok is false if there is
// none, or it cannot be told.
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

// shows reports whether a mount shows the subject or a part of it. A btrfs does not have the number of its device, but
// names the device as its source.
func (s Subject) shows(m *mountinfo.Info) bool {
	same := s.has(uint32(m.Major), uint32(m.Minor)) || s.DevicePath != "" && m.Source == s.DevicePath
	return same && within(m.Root, s.Root)
}

// isNode reports whether an open file, given by its link in /proc, is the subject's device, under whatever name a
// container has it. No server is asked about the file (AT_STATX_DONT_SYNC, statx(2)).
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

// mountsOf reads the mounts that a process, given by its directory in /proc, sees.
func mountsOf(process string) ([]*mountinfo.Info, error) {
	file, err := os.Open(process + "/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // open for reading only
	return mountinfo.GetMountsFromReader(file, nil)
}

// seesAll reports whether /proc shows the processes of the whole machine, which requires the initial PID namespace. The
// kernel gives that one a fixed number (PID_NS_INIT_INO of linux/nsfs.h).
func seesAll() bool {
	const first = 0xEFFFFFFC
	var stat unix.Stat_t
	return unix.Stat("/proc/self/ns/pid", &stat) == nil && stat.Ino == first
}
