package discovery

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Below returns the names of the volumes that share bytes with the filesystem that is mounted at a path: the volumes
// that its device, the disk of that, or its partitions are, or would be.
func Below(at string) ([]string, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(m *mounted) bool { return m.Mountpoint == at })
	if i < 0 {
		return nil, fmt.Errorf("no filesystem is mounted at %s", at)
	}
	return all[i].below()
}

// below returns the names of the volumes that share bytes with a mounted filesystem.
func (m *mounted) below() ([]string, error) {
	b, err := m.device()
	if err != nil {
		return nil, fmt.Errorf("look for the device of the filesystem at %s: %w", m.Mountpoint, err)
	}
	sharers, err := b.sharers()
	if err != nil {
		return nil, fmt.Errorf("look for the devices that share bytes with %s: %w", b.node(), err)
	}
	return namesOf(append(sharers, b))
}

// device returns the device whose bytes a mounted filesystem has.
func (m *mounted) device() (*block, error) {
	f, err := m.openDevice()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // open for reading only
	b, err := blockOf(f)
	if err != nil {
		return nil, err
	}
	return b.bottom()
}

// blockOf returns the block device of an open node.
func blockOf(f *os.File) (*block, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return blockAt(stat.Rdev)
}

// bottom returns the device whose bytes a device has: the one that a loop device holds, else the device itself.
func (b *block) bottom() (*block, error) {
	if b.transport != "loop" {
		return b, nil
	}
	info, err := loopInfo(cmp.Or(b.disk, b).node())
	if err != nil {
		return nil, err
	}
	if info.Rdevice == 0 {
		return b, nil
	}
	held, err := blockAt(info.Rdevice)
	if err != nil {
		return nil, err
	}
	return held.bottom()
}
