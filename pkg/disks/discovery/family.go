package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// relatives returns the devices that share bytes with a device: the disk of a partition, or the partitions of a disk.
func (b *block) relatives() ([]*block, error) {
	if b.disk != nil {
		return []*block{b.disk}, nil
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	var partitions []*block
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), b.name) {
			continue
		}
		partition, err := readBlock(filepath.Join(b.dir, entry.Name()))
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

// sharers returns the devices that share bytes with a device: its relatives, the devices that it is built on, as a
// logical volume or a RAID is, and their relatives.
func (b *block) sharers() ([]*block, error) {
	all, err := b.relatives()
	if err != nil {
		return nil, err
	}
	dir := cmp.Or(b.disk, b).dir
	names, err := namesIn(dir, "slaves")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		slave, err := readBlock(filepath.Join(dir, "slaves", name))
		if err == nil {
			slave, err = slave.bottom()
		}
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		below, err := slave.sharers()
		if err != nil {
			return nil, err
		}
		all = append(append(all, slave), below...)
	}
	return all, nil
}

// isGone reports whether an entry in sysfs disappeared while it was read.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// relativesOf returns the relatives of the device of a number.
func relativesOf(major, minor uint32) ([]*block, error) {
	b, err := blockAt(unix.Mkdev(major, minor))
	if err != nil {
		return nil, err
	}
	return b.relatives()
}

// Relatives returns the names of the volumes that share bytes with the device of a number: the volumes that its disk,
// its own partitions, or the devices that it is built on are, or would be.
func Relatives(major, minor uint32) (names []string, err error) {
	b, err := blockAt(unix.Mkdev(major, minor))
	if err != nil {
		return nil, fmt.Errorf("look at device %d:%d: %w", major, minor, err)
	}
	sharers, err := b.sharers()
	if err != nil {
		return nil, fmt.Errorf("look for the devices that share bytes with %s: %w", b.node(), err)
	}
	return namesOf(sharers)
}

// namesOf returns the names of the volumes that devices are, or would be. A device that is gone, or reports no
// identity, is no volume.
func namesOf(devices []*block) (names []string, err error) {
	for _, d := range devices {
		identity, err := IdentityOf(d.major, d.minor)
		if _, isAnonymous := errors.AsType[anonymousError](err); isAnonymous || isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names = append(names, NameOf(identity))
	}
	return names, nil
}

// taken returns the first name of a volume that may be in use, or was used, or "" if there is none.
func (r Remember) taken(names []string) string {
	for _, name := range names {
		if h := r(name); h.Taken || h.Dirty || h.Unproven {
			return name
		}
	}
	return ""
}

// shares marks a volume that shares bytes with another one, which may be in use, or was used. If its own offer was
// withdrawn, it is dirty instead: of two such volumes each would wait for the other, and neither would ever be free.
func (h History) shares(v *report.Volume, other string) {
	if h.Withdrawn {
		History{Dirty: true}.Known(v)
		return
	}
	busy(v, "it shares its bytes with the volume %s, which is offered, or was and is not wiped", other)
}
