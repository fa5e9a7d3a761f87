package discovery

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSharers reads, from a copy of sysfs, a logical volume that is on a partition and on a RAID.
func TestSharers(t *testing.T) {
	root := t.TempDir()
	device := func(at string, attributes map[string]string) {
		t.Helper()
		dir := filepath.Join(root, at)
		err := os.MkdirAll(filepath.Join(dir, "slaves"), 0o700)
		attributes["size"] = "2048"
		for name, value := range attributes {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(value+"\n"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	device("sda", map[string]string{"dev": "8:0"})
	device("sda/sda1", map[string]string{"dev": "8:1", "partition": "1", "start": "2048"})
	device("sda/sda2", map[string]string{"dev": "8:2", "partition": "2", "start": "8192"})
	device("sdb", map[string]string{"dev": "8:16"})
	device("md0", map[string]string{"dev": "9:0"})
	device("dm-0", map[string]string{"dev": "253:0"})
	for slave, of := range map[string]string{"sda/sda1": "dm-0", "md0": "dm-0", "sdb": "md0"} {
		link := filepath.Join(root, of, "slaves", filepath.Base(slave))
		if err := os.Symlink(filepath.Join(root, slave), link); err != nil {
			t.Fatal(err)
		}
	}
	volume, err := readBlock(filepath.Join(root, "dm-0"))
	if err != nil {
		t.Fatal(err)
	}
	sharers, err := volume.sharers()
	var names []string
	for _, s := range sharers {
		names = append(names, s.name)
	}
	slices.Sort(names)
	if want := []string{"md0", "sda", "sda1", "sdb"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the logical volume shares its bytes with %q (%v), want %q", names, err, want)
	}
}
