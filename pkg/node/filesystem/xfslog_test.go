package filesystem

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node/device"
)

// The log of an xfs is clean after an unmount or a freeze, and at no other time, wherever in its ring that was.
func TestUnreplayedXFS(t *testing.T) {
	for name, test := range map[string]struct {
		options string
		rounds  int
	}{
		"default":        {"", 2},
		"small log":      {"--unsupported -l size=8m", 14},
		"padded records": {"--unsupported -l size=8m,su=32k", 14},
		"1k blocks":      {"--unsupported -b size=1024 -l size=10m", 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := image(t, 300*mib)
			if !tool(t, strings.Fields("mkfs.xfs -q "+test.options+" "+f.Name())...) {
				t.Skip("SKIPPED: mkfs.xfs is not installed")
			}
			d := attach(t, f)
			wantUnreplayed(t, d, "just made", false)
			cycles := 0
			for round := range test.rounds {
				dir := t.TempDir()
				if err := unix.Mount(d.Path, dir, "xfs", 0, ""); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
				work(t, dir, round, 30)
				flushed(t, d)
				wantUnreplayed(t, d, "in use", true)
				freeze(t, dir, fiFreeze)
				flushed(t, d)
				wantUnreplayed(t, d, "frozen", false)
				freeze(t, dir, fiThaw)
				work(t, dir, round+1000, 1)
				flushed(t, d)
				wantUnreplayed(t, d, "thawed", true)
				if err := unix.Unmount(dir, 0); err != nil {
					t.Fatal(err)
				}
				flushed(t, d)
				wantUnreplayed(t, d, "unmounted", false)
				if l, ok := logOf(&window{r: d.File, size: d.SizeBytes}); ok {
					cycles = int(l.cycle(0))
				}
			}
			t.Logf("the log is in its cycle %d", cycles)
			if strings.Contains(test.options, "8m") && cycles < 2 {
				t.Error("the log did not come round: the test is wrong")
			}
		})
	}
}

// work creates and removes files, each of which goes to the log at once.
func work(t *testing.T, dir string, round, files int) {
	t.Helper()
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for i := range files {
		path := filepath.Join(dir, fmt.Sprint(round, i))
		for j := range 40 {
			if err := os.MkdirAll(filepath.Join(path, strings.Repeat("d", 100+j)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Syncfs(int(root.Fd())); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Syncfs(int(root.Fd())); err != nil {
		t.Fatal(err)
	}
}

const (
	fiFreeze = 0xc0045877 // FIFREEZE
	fiThaw   = 0xc0045878 // FITHAW
)

func freeze(t *testing.T, dir string, request uint) {
	t.Helper()
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := unix.IoctlSetInt(int(root.Fd()), request, 0); err != nil {
		t.Fatal(err)
	}
}

// flushed drops cached reads of the device, which the kernel's own writes bypass.
func flushed(t *testing.T, d *device.Device) {
	t.Helper()
	if err := unix.IoctlSetInt(int(d.File.Fd()), unix.BLKFLSBUF, 0); err != nil {
		t.Fatal(err)
	}
}

func wantUnreplayed(t *testing.T, d *device.Device, state string, want bool) {
	t.Helper()
	got, err := UnreplayedXFS(t.Context(), d.File, d.SizeBytes)
	if err != nil || got != want {
		t.Errorf("%s: to be replayed is %t, %v, want %t", state, got, err, want)
	}
}
