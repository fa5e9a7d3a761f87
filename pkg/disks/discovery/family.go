package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// relatives returns the devices that share bytes with a device: the disk of a partition, or the partitions of a disk.
func (b *block) relatives() ([]*block, error) {
	if b.disk != nil {
		return []*block{b.disk}, nil
	}
	dir, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", b.major, b.minor))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var partitions []*block
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), b.name) {
			continue
		}
		partition, err := readBlock(filepath.Join(dir, entry.Name()))
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if partition.partition > 0 { // The boot areas of an mmc are disks below it.
			partitions = append(partitions, partition)
		}
	}
	return partitions, nil
}

// isGone reports whether an entry in sysfs disappeared while it was read.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// relativesOf returns the relatives of the device of a number.
func relativesOf(major, minor uint32) ([]*block, error) {
	b, err := readBlock(fmt.Sprintf("/sys/dev/block/%d:%d", major, minor))
	if err != nil {
		return nil, err
	}
	return b.relatives()
}

// Relatives returns the names of the volumes that share bytes with the device of a number: the volumes that its disk or
// its own partitions are, or would be.
func Relatives(major, minor uint32) (names []string, err error) {
	relatives, err := relativesOf(major, minor)
	if err != nil {
		return nil, fmt.Errorf("look for the partitions of device %d:%d: %w", major, minor, err)
	}
	for _, r := range relatives {
		identity, err := IdentityOf(r.major, r.minor)
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names = append(names, NameOf(identity))
	}
	return names, nil
}

// taken returns the name of a volume that shares bytes with a device and that may be in use, or was used.
func (b *block) taken(remember Remember) (string, error) {
	names, err := Relatives(b.major, b.minor)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if h := remember(name); h.Taken || h.Dirty || h.Unproven {
			return name, nil
		}
	}
	return "", nil
}
