package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// block is a block device as the kernel describes it, without opening it.
type block struct {
	name         string // the kernel's name, such as nvme0n1p1
	dir          string // in sysfs
	major, minor uint32
	size         int64
	readOnly     bool
	rotational   bool
	model        string
	transport    string
	partition    int    // its number; 0 for a whole disk
	start        string // of the partition
	disk         *block // the disk that the partition is on
	holders      []string
}

func (b *block) node() string { return "/dev/" + strings.ReplaceAll(b.name, "!", "/") }

func (b *block) number() uint64 { return unix.Mkdev(b.major, b.minor) }

// blocks returns the block devices that have a size.
func blocks() ([]*block, error) {
	const root = "/sys/class/block"
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list the block devices: %w", err)
	}
	var all []*block
	for _, entry := range entries {
		b, err := readBlock(filepath.Join(root, entry.Name()))
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at the block device %s: %w", entry.Name(), err)
		}
		if b.size > 0 {
			all = append(all, b)
		}
	}
	return all, nil
}

// blockAt returns the block device of a number.
func blockAt(number uint64) (*block, error) {
	return readBlock(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(number), unix.Minor(number)))
}

func readBlock(link string) (*block, error) {
	dir, err := filepath.EvalSymlinks(link)
	if err != nil {
		return nil, err
	}
	b := &block{name: filepath.Base(dir), dir: dir, transport: transportOf(dir)}
	number, err := attribute(dir, "dev")
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Sscanf(number, "%d:%d", &b.major, &b.minor); err != nil {
		return nil, fmt.Errorf("its number is %q: %w", number, err)
	}
	sectors, err := attribute(dir, "size")
	if err != nil {
		return nil, err
	}
	const sector = 512 // whatever the device's own
	n, err := strconv.ParseInt(sectors, 10, 54)
	if err != nil {
		return nil, fmt.Errorf("its size is %q: %w", sectors, err)
	}
	b.size = n * sector
	if b.holders, err = namesIn(dir, "holders"); err != nil {
		return nil, err
	}
	return b, b.readRest(dir)
}

// readRest reads the attributes that not all devices have.
func (b *block) readRest(dir string) error {
	readOnly, err := optional(dir, "ro")
	if err != nil {
		return err
	}
	b.readOnly = readOnly == "1"
	number, err := optional(dir, "partition")
	if err != nil {
		return err
	}
	if number != "" {
		b.partition, _ = strconv.Atoi(number) // The kernel writes a number.
		if b.start, err = attribute(dir, "start"); err != nil {
			return err
		}
		if b.disk, err = readBlock(filepath.Dir(dir)); err != nil {
			return err
		}
		b.rotational, b.model = b.disk.rotational, b.disk.model
		return nil
	}
	rotational, err := optional(dir, "queue/rotational")
	if err != nil {
		return err
	}
	b.rotational = rotational == "1"
	b.model, err = optional(dir, "device/model")
	return err
}

// transportOf returns how a disk is connected, by its place in sysfs.
func transportOf(dir string) string {
	for _, t := range []struct{ part, name string }{
		{"/nvme", "nvme"}, {"/usb", "usb"}, {"/virtio", "virtio"}, {"/mmc_host", "mmc"}, {"/ata", "sata"},
		{"/virtual/block/loop", "loop"}, {"/virtual/block/dm-", "dm"}, {"/target", "scsi"},
	} {
		if strings.Contains(dir, t.part) {
			return t.name
		}
	}
	return ""
}

func attribute(dir, name string) (string, error) {
	text, err := rawfile.Read(filepath.Join(dir, name))
	return strings.TrimSpace(string(text)), err
}

func optional(dir, name string) (string, error) {
	text, err := attribute(dir, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EINVAL) {
		return "", nil
	}
	return text, err
}

func namesIn(dir, name string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}
