package region

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Disks is a directory that simulates /sys/block.
type Disks string

// Serial returns the serial number of a volume's disk.
func Serial(volume string) string { return strings.Replace(volume, "-", "", 1) }

// Plug adds a disk, as the kernel shows it: with a serial number padded to the 20 characters of NVMe and a newline.
func (d Disks) Plug(volume string) error {
	for n := 1; ; n++ {
		dir := filepath.Join(string(d), fmt.Sprintf("nvme%dn1", n))
		if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(dir, "device"), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "device", "serial"), fmt.Appendf(nil, "%-20s\n", Serial(volume)), 0o600)
	}
}

// Unplug removes a disk.
func (d Disks) Unplug(volume string) (err error) {
	found, _ := filepath.Glob(filepath.Join(string(d), "nvme*n1", "device", "serial"))
	for _, path := range found {
		if text, _ := os.ReadFile(path); strings.TrimSpace(string(text)) == Serial(volume) {
			err = errors.Join(err, os.RemoveAll(filepath.Dir(filepath.Dir(path))))
		}
	}
	return err
}
