package stats

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounting needs root")
	}
}

func TestFilesystemOfKnownSize(t *testing.T) {
	needRoot(t)
	path := t.TempDir()
	if err := unix.Mount("stats", path, "tmpfs", 0, "size=4m,nr_inodes=100"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	before, inodes, err := Filesystem(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if before.Total != 4<<20 || before.Used+before.Available != before.Total {
		t.Errorf("bytes %+v, want a total of %d, all of it used or available", before, 4<<20)
	}
	if inodes.Total != 100 || inodes.Used+inodes.Available != 100 {
		t.Errorf("inodes %+v, want 100 in all", inodes)
	}
	if err := os.WriteFile(filepath.Join(path, "data"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	after, more, err := Filesystem(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if after.Used-before.Used != 1<<20 || more.Used-inodes.Used != 1 {
		t.Errorf("writing 1 MiB in a file changed bytes from %+v to %+v and inodes from %+v to %+v", before, after, inodes,
			more)
	}
}

func TestUsageIsNeverNegative(t *testing.T) {
	for _, test := range []struct {
		name                   string
		total, free, available uint64
		want                   Usage
	}{
		{"ordinary", 100, 40, 30, Usage{400, 240, 120}},
		{"empty", 0, 0, 0, Usage{}},
		{"over quota", 100, 40, ^uint64(0) - 7, Usage{400, 240, 0}},
		{"more free than there is", 100, 120, 120, Usage{400, 0, 400}},
	} {
		if got := usage(test.total, test.free, test.available, 4); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestDevice(t *testing.T) {
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(file, make([]byte, 12345), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if size, err := Device(t.Context(), file); size != 12345 || err != nil {
		t.Errorf("Device(file) = %d, %v", size, err)
	}
	for path, kind := range map[string]backends.Kind{
		dir: backends.Invalid, fifo: backends.Invalid, filepath.Join(dir, "absent"): backends.NotFound,
	} {
		if _, err := Device(t.Context(), path); !backends.Is(err, kind) {
			t.Errorf("Device(%s) gave %v, want Kind %s", path, err, kind)
		}
	}
	if _, _, err := Filesystem(t.Context(), filepath.Join(dir, "absent")); !backends.Is(err, backends.NotFound) {
		t.Errorf("Filesystem of an absent path gave %v, want NotFound", err)
	}
}
