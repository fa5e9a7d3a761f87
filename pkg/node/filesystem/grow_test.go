package filesystem

import (
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// enlarge grows the image under a device.
func enlarge(t *testing.T, f *os.File, d *device.Device, size int64) {
	t.Helper()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if got, err := device.Refresh(t.Context(), d.Path); err != nil || got != size {
		t.Fatalf("the device has %d bytes, %v, want %d", got, err, size)
	}
}

func TestGrowOffline(t *testing.T) {
	f := image(t, 16*mib)
	d := attach(t, f)
	format(t, d, "ext4")
	mountOnce(t, d, "ext4")
	enlarge(t, f, d, 200*mib)
	before := probe(t, d.File)
	if !NeedsGrow(before, 200*mib) {
		t.Fatalf("a filesystem of %d bytes is not to grow to 200 MiB", before.SizeBytes)
	}
	if err := NewTools(1).GrowOffline(t.Context(), d.Path, "ext4", intentBase(t)); err != nil {
		t.Fatal(err)
	}
	after := probe(t, d.File)
	if NeedsGrow(after, 200*mib) || after.SizeBytes <= before.SizeBytes || after.UUID != before.UUID {
		t.Errorf("it has %+v after growing, had %+v", after, before)
	}
	dir := mounted(t, d, "ext4")
	if data, err := os.ReadFile(dir + "/data"); err != nil || string(data) != "data" {
		t.Errorf("the data is %q, %v after growing", data, err)
	}
	if err := NewTools(1).GrowOffline(t.Context(), d.Path, "xfs", intentBase(t)); err != nil {
		t.Errorf("growing an unmounted xfs, which is done later: %v", err)
	}
}

// Growing comes to an end for each of these sizes, which leave no room for a last group.
func TestGrowOfflineOddSizes(t *testing.T) {
	f := image(t, 100*mib)
	d := attach(t, f)
	format(t, d, "ext4")
	for _, size := range []int64{100*mib + 4096, 128*mib + 8*4096, 129 * mib, 256*mib + 40960, 257*mib + 512} {
		enlarge(t, f, d, size)
		if NeedsGrow(probe(t, d.File), size) {
			if err := NewTools(1).GrowOffline(t.Context(), d.Path, "ext4", intentBase(t)); err != nil {
				t.Fatal(err)
			}
		}
		if found := probe(t, d.File); NeedsGrow(found, size) {
			t.Errorf("after growing to a device of %d bytes the filesystem has %d and is to grow still", size, found.SizeBytes)
		}
	}
}

func TestGrowMounted(t *testing.T) {
	for _, fsType := range []string{"xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			f := image(t, classes.Least(fsType))
			d := attach(t, f)
			format(t, d, fsType)
			dir := mounted(t, d, fsType)
			if err := GrowMounted(t.Context(), dir, d.Path, fsType); err != nil {
				t.Errorf("growing a filesystem that fills its device: %v", err)
			}
			for _, size := range []int64{600 * mib, 601*mib + 512} {
				enlarge(t, f, d, size)
				if err := GrowMounted(t.Context(), dir, d.Path, fsType); err != nil {
					t.Fatal(err)
				}
				if err := unix.Unmount(dir, 0); err != nil {
					t.Fatal(err)
				}
				if found := probe(t, d.File); NeedsGrow(found, size) || found.SizeBytes < size-mib {
					t.Errorf("the filesystem has %d bytes on a device of %d", found.SizeBytes, size)
				}
				if err := unix.Mount(d.Path, dir, fsType, 0, ""); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Growing a mounted ext4 needs a capability that not every machine gives. Without it the error names it.
func TestGrowMountedExt4(t *testing.T) {
	f := image(t, 16*mib)
	d := attach(t, f)
	format(t, d, "ext4")
	dir := mounted(t, d, "ext4")
	enlarge(t, f, d, 64*mib)
	err := GrowMounted(t.Context(), dir, d.Path, "ext4")
	if errors.Is(err, unix.EPERM) {
		wantKind(t, err, backends.Denied)
		t.Log("this process lacks CAP_SYS_RESOURCE: the growth itself is not tested")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	if found := probe(t, d.File); NeedsGrow(found, 64*mib) {
		t.Errorf("the filesystem has %d bytes, want 64 MiB", found.SizeBytes)
	}
}

// A mounted ext4 that was grown before the mount needs no capability: Kubernetes asks to grow it once more.
func TestGrowMountedExt4Done(t *testing.T) {
	f := image(t, 16*mib)
	d := attach(t, f)
	format(t, d, "ext4")
	mountOnce(t, d, "ext4")
	enlarge(t, f, d, 64*mib)
	if err := NewTools(1).GrowOffline(t.Context(), d.Path, "ext4", intentBase(t)); err != nil {
		t.Fatal(err)
	}
	if err := GrowMounted(t.Context(), mounted(t, d, "ext4"), d.Path, "ext4"); err != nil {
		t.Error(err)
	}
}

// The kernel resizes no btrfs below 256 MiB. This is not tried on each stage, and a request to grow reports it.
func TestGrowSmallBtrfs(t *testing.T) {
	f := image(t, classes.Least("btrfs"))
	d := attach(t, f)
	format(t, d, "btrfs")
	enlarge(t, f, d, 200*mib)
	if NeedsGrow(probe(t, d.File), 200*mib) {
		t.Error("it is to grow to a size that the kernel refuses")
	}
	dir := mounted(t, d, "btrfs")
	wantKind(t, GrowMounted(t.Context(), dir, d.Path, "btrfs"), backends.OutOfRange)
}

func TestGrowMountedRefuses(t *testing.T) {
	d := attach(t, image(t, classes.Least("xfs")))
	format(t, d, "xfs")
	dir := mounted(t, d, "xfs")
	other := attach(t, image(t, mib))
	wantKind(t, GrowMounted(t.Context(), dir, other.Path, "xfs"), backends.Unavailable)
	wantKind(t, GrowMounted(t.Context(), dir, d.Path, "vfat"), backends.Invalid)
	wantKind(t, GrowMounted(t.Context(), dir+"/none", d.Path, "xfs"), backends.NotFound)
	wantKind(t, GrowMounted(t.Context(), dir, "/dev/none", "xfs"), backends.NotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, GrowMounted(ctx, dir, d.Path, "xfs"), backends.Unavailable)
}

func TestCheck(t *testing.T) {
	needTools(t, "ext4")
	f := image(t, 16*mib)
	d := attach(t, f)
	format(t, d, "ext4")
	if err := NewTools(1).Check(t.Context(), d.Path, "ext4", intentBase(t)); err != nil {
		t.Errorf("a clean filesystem: %v", err)
	}
	if err := NewTools(1).Check(t.Context(), d.Path, "xfs", intentBase(t)); err != nil {
		t.Errorf("xfs, which is not checked: %v", err)
	}
	if !tool(t, "debugfs", "-w", "-R", "set_super_value state 0", d.Path) {
		t.Skip("SKIPPED: debugfs is not installed")
	}
	if !probe(t, d.File).Dirty {
		t.Fatal("the filesystem is not dirty: the test is wrong")
	}
	if err := NewTools(1).Check(t.Context(), d.Path, "ext4", intentBase(t)); err != nil {
		t.Errorf("a dirty filesystem: %v", err)
	}
	if probe(t, d.File).Dirty {
		t.Error("it is dirty still")
	}
}

func TestCheckCannotRepair(t *testing.T) {
	needTools(t, "ext4")
	d := attach(t, image(t, 16*mib))
	format(t, d, "ext4")
	if !tool(t, "debugfs", "-w", "-R", "set_inode_field <2> block[0] 1", d.Path) ||
		!tool(t, "debugfs", "-w", "-R", "set_inode_field <2> mode 0", d.Path) ||
		!tool(t, "debugfs", "-w", "-R", "set_super_value state 2", d.Path) {
		t.Skip("SKIPPED: debugfs is not installed")
	}
	wantKind(t, NewTools(1).Check(t.Context(), d.Path, "ext4", intentBase(t)), backends.Unknown)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, NewTools(1).Check(ctx, d.Path, "ext4", intentBase(t)), backends.Unavailable)
	wantKind(t, NewTools(1).Check(t.Context(), "/dev/none", "ext4", intentBase(t)), backends.Unavailable)
}

func TestNeedsGrow(t *testing.T) {
	for name, test := range map[string]struct {
		found Found
		size  int64
		want  bool
	}{
		"blank":             {Found{}, 100, false},
		"not ours":          {Found{Type: "ntfs", SizeBytes: 10}, 100, false},
		"size not known":    {Found{Type: "xfs"}, 100, false},
		"as large":          {Found{Type: "xfs", SizeBytes: 100}, 100, false},
		"larger":            {Found{Type: "xfs", SizeBytes: 101}, 100, false},
		"no geometry":       {Found{Type: "xfs", SizeBytes: 99}, 100, true},
		"less than a block": {Found{Type: "btrfs", SizeBytes: 4096, grid: grid{block: 4096}}, 8191, false},
		"a block":           {Found{Type: "btrfs", SizeBytes: 4096, grid: grid{block: 4096}}, 8192, true},
		"small last group": {Found{Type: "ext4", SizeBytes: 1000, grid: grid{block: 1, group: 1000, least: 50}}, 1049,
			false},
		"least last group": {Found{Type: "ext4", SizeBytes: 1000, grid: grid{block: 1, group: 1000, least: 50}}, 1050, true},
		"within a group":   {Found{Type: "ext4", SizeBytes: 1060, grid: grid{block: 1, group: 1000, least: 50}}, 1061, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NeedsGrow(test.found, test.size); got != test.want {
				t.Errorf("NeedsGrow = %t, want %t", got, test.want)
			}
		})
	}
}
