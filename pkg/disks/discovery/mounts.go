package discovery

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/holders"
)

// mounted is a mounted filesystem of a block device.
type mounted struct {
	*mountinfo.Info
	size      int64
	elsewhere string // another place where the same filesystem is mounted
	problem   error
}

// mounts returns the mounted filesystems of block devices, each mount point once: the topmost mount.
func mounts() ([]*mounted, error) {
	infos, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("list what is mounted: %w", err)
	}
	return list(infos, mountsOfNode()), nil
}

// list returns the mounts here, and for each filesystem where else it is mounted, here or elsewhere on the node.
// Another path to the same mount point, or the node's path to a mount here, is not another place.
func list(here, node []*mountinfo.Info) []*mounted {
	top, shows := map[string]*mountinfo.Info{}, map[string][]*mountinfo.Info{}
	for _, info := range here { // The last one is on top.
		top[info.Mountpoint] = info
	}
	for _, info := range append(slices.Clip(here), node...) {
		shows[filesystemOf(info)] = append(shows[filesystemOf(info)], info)
	}
	places := placesOf(here)
	maps.Copy(places, placesOf(node))
	var all []*mounted
	for _, info := range here {
		if !strings.HasPrefix(info.Source, "/dev/") || top[info.Mountpoint] != info {
			continue
		}
		m := &mounted{Info: info}
		for _, other := range shows[filesystemOf(info)] {
			at, isKnown := places[other]
			if other.Mountpoint != info.Mountpoint && (!isKnown || at != places[info]) {
				m.elsewhere = other.Mountpoint
			}
		}
		all = append(all, m)
	}
	return all
}

// mountsOfNode returns the mounts of the node's first process, of which a container sees a part. It returns nothing if
// that process is the container's own, or its mounts cannot be read.
func mountsOfNode() []*mountinfo.Info {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return nil
	}
	if first, err := os.Readlink("/proc/1/ns/mnt"); err != nil || first == own {
		return nil
	}
	table, err := os.Open("/proc/1/mountinfo")
	if err != nil {
		return nil
	}
	defer func() { _ = table.Close() }() // open for reading only
	infos, err := mountinfo.GetMountsFromReader(table, nil)
	if err != nil {
		return nil
	}
	return infos
}

// isReadOnly reports whether a filesystem cannot be written to here, as after an error of its disk.
func (m *mounted) isReadOnly() bool {
	options := strings.Split(m.Options+","+m.VFSOptions, ",")
	return slices.Contains(options, "ro") || slices.Contains(options, "emergency_ro")
}

// errReadOnly says why a filesystem can be neither used nor emptied.
func (m *mounted) errReadOnly() error {
	return fmt.Errorf("the filesystem at %s is mounted read-only, as after an error of its disk: check it, and mount it"+
		" for writing", m.Mountpoint)
}

// alone fails if a process works in a filesystem or has a file of it open. A mount in another mount namespace is no use
// of it: agents of a node often have all of the node's mounts.
func (m *mounted) alone(ctx context.Context) error {
	found := holders.Of(ctx, holders.Subject{Major: uint32(m.Major), Minor: uint32(m.Minor), Root: m.Root,
		DevicePath: m.Source, At: m.Mountpoint})
	for _, h := range found.Holders {
		if h.PID != 0 && h.PID != os.Getpid() && !h.IsCopy {
			return &InUseError{h.String()}
		}
	}
	if isBlind(ctx, found, os.Getpid()) {
		return fmt.Errorf("the filesystem at %s may be in use: %s", m.Mountpoint, holders.Found{Partial: true})
	}
	return nil
}

// filesystemOf distinguishes filesystems. A btrfs has a device number of its own for each subvolume, and names its
// device as source.
func filesystemOf(info *mountinfo.Info) string {
	if info.FSType == "btrfs" {
		return info.Source
	}
	return fmt.Sprintf("%d:%d", info.Major, info.Minor)
}

// identity reads the filesystem's UUID from its device: nothing else identifies a mount permanently.
func (m *mounted) identity(ctx context.Context) (string, error) {
	f, err := m.openDevice()
	if err != nil {
		return "", fmt.Errorf("open the device of the filesystem at %s: %w", m.Mountpoint, err)
	}
	defer func() { _ = f.Close() }() // open for reading only
	size, err := device.SizeOf(f)
	if err != nil {
		return "", err
	}
	found, err := filesystem.Probe(ctx, f, size)
	if err != nil {
		return "", err
	}
	if found.UUID == "" || found.Type != m.FSType {
		return "", fmt.Errorf("the %s at %s cannot be told from another: its device %s shows %s, UUID %q", m.FSType,
			m.Mountpoint, m.Source, found, found.UUID)
	}
	return filesystemIdentity(m.FSType, found.UUID), nil
}

// openDevice opens the block device of the filesystem.
func (m *mounted) openDevice() (*os.File, error) {
	f, err := os.OpenFile(m.Source, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &stat)
	if err == nil && (stat.Mode&unix.S_IFMT != unix.S_IFBLK || m.FSType != "btrfs" &&
		stat.Rdev != unix.Mkdev(uint32(m.Major), uint32(m.Minor))) {
		err = fmt.Errorf("%s is not the device %d:%d", m.Source, m.Major, m.Minor)
	}
	if err != nil {
		_ = f.Close() // open for reading only
		return nil, err
	}
	return f, nil
}
