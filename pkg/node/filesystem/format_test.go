package filesystem

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// leastSizes are images that each type fits into, in bytes.
func leastSize(fsType string) int64 {
	m, _ := makerOf(fsType)
	return m.leastSize
}

func format(t *testing.T, d *device.Device, fsType string) {
	t.Helper()
	needTools(t, fsType)
	if err := Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: fsType}); err != nil {
		t.Fatal(err)
	}
}

func TestFormat(t *testing.T) {
	for _, fsType := range Types() {
		t.Run(fsType, func(t *testing.T) {
			d := attach(t, image(t, leastSize(fsType)))
			format(t, d, fsType)
			found := probe(t, d.File)
			if found.Type != fsType || found.UUID == "" || found.Incomplete || found.Dirty {
				t.Errorf("found %+v, want a clean %s with a UUID", found, fsType)
			}
			if NeedsGrow(found, d.SizeBytes) {
				t.Errorf("a new filesystem of %d bytes is to grow on a device of %d", found.SizeBytes, d.SizeBytes)
			}
			err := Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: fsType})
			wantKind(t, err, backends.InUse)
		})
	}
}

// What mkfs makes fills its device, whatever the size: otherwise each stage would grow it in vain.
func TestNewFilesystemNeedsNoGrow(t *testing.T) {
	for fsType, sizes := range map[string][]int64{
		"ext4":  {2 * mib, 8*mib + 512, 16 * mib, 17*mib + 3072, 128 * mib, 129 * mib, 130 * mib, 137 * mib, 513 * mib, 1<<30 + mib, 5<<30 + 512, 40<<30 + 2*mib},
		"xfs":   {300 * mib, 301*mib + 512, 1<<30 + 12288, 5<<30 + 512, 40<<30 + 2*mib},
		"btrfs": {109 * mib, 130*mib + 512, 1<<30 + 12288, 40<<30 + 2*mib},
	} {
		needTools(t, fsType)
		for _, size := range sizes {
			f := image(t, size)
			m, _ := makerOf(fsType)
			tool(t, append(append([]string{m.tools[0]}, m.args...), f.Name())...)
			if found := probe(t, f); found.Type != fsType || NeedsGrow(found, size) {
				t.Errorf("%s on %d bytes: found %+v, which needs to grow: %t", fsType, size, found, NeedsGrow(found, size))
			}
		}
	}
}

func TestFormatRefuses(t *testing.T) {
	needTools(t, "ext4")
	d := attach(t, image(t, 16*mib))
	other := attach(t, image(t, 16*mib))
	small := attach(t, image(t, mib))
	for name, test := range map[string]struct {
		req  Request
		want backends.Kind
	}{
		"unknown type":  {Request{Path: d.Path, Held: d.File, FSType: "ext3"}, backends.Invalid},
		"forced":        {Request{Path: d.Path, Held: d.File, FSType: "ext4", Options: []string{"-F"}}, backends.Invalid},
		"forced, mixed": {Request{Path: d.Path, Held: d.File, FSType: "ext4", Options: []string{"-qF"}}, backends.Invalid},
		"forced, long":  {Request{Path: d.Path, Held: d.File, FSType: "btrfs", Options: []string{"--force"}}, backends.Invalid},
		"too small":     {Request{Path: small.Path, Held: small.File, FSType: "ext4"}, backends.OutOfRange},
		"another node":  {Request{Path: other.Path, Held: d.File, FSType: "ext4"}, backends.Unavailable},
		"no node":       {Request{Path: "/dev/none-such", Held: d.File, FSType: "ext4"}, backends.Unavailable},
		"bad option":    {Request{Path: d.Path, Held: d.File, FSType: "ext4", Options: []string{"-O", "none-such"}}, backends.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			wantKind(t, Format(t.Context(), test.req), test.want)
		})
	}
	for _, d := range []*device.Device{d, other, small} {
		if found := probe(t, d.File); !found.Blank() {
			t.Errorf("%s holds %s", d, found)
		}
	}
}

func TestFormatWithOptions(t *testing.T) {
	needTools(t, "ext4")
	d := attach(t, image(t, 16*mib))
	if err := Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: "ext4", Options: []string{"-b", "4096"}}); err != nil {
		t.Fatal(err)
	}
	if found := probe(t, d.File); found.grid.block != 4096 {
		t.Errorf("blocks of %d bytes, want 4096", found.grid.block)
	}
}

// Killed at any moment, mkfs leaves something that Resume finishes, and that nothing else formats.
func TestFormatResumesAfterKill(t *testing.T) {
	for _, fsType := range Types() {
		t.Run(fsType, func(t *testing.T) {
			needTools(t, fsType)
			m, _ := makerOf(fsType)
			path, _ := lookTool(m.tools[0])
			cut := 0
			for pause := time.Duration(0); pause < 24*time.Millisecond; pause += 2 * time.Millisecond {
				d := attach(t, image(t, leastSize(fsType)))
				cmd := exec.CommandContext(t.Context(), path, append(append([]string{}, m.args...), d.Path)...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				timer := time.AfterFunc(pause, func() { _ = cmd.Process.Kill() })
				if err := cmd.Wait(); err != nil {
					cut++
				}
				timer.Stop()
				before := probe(t, d.File)
				err := Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: fsType})
				if before.Blank() != (err == nil) {
					t.Errorf("killed after %s: it held %s and formatting it without proof ended with %v", pause, before, err)
				}
				err = Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: fsType, Resume: true})
				if found := probe(t, d.File); err != nil || found.Type != fsType || found.Incomplete {
					t.Errorf("killed after %s: it held %s, resuming ended with %v and left %s", pause, before, err, found)
				}
				_ = d.Close() // the device frees itself
			}
			t.Logf("cut short %d times of 12", cut)
		})
	}
}

// Resume never touches a filesystem that may have been used, whatever the proof.
func TestResumeSparesWhatIsFinished(t *testing.T) {
	for _, fsType := range []string{"xfs", "btrfs"} {
		d := attach(t, image(t, leastSize(fsType)))
		format(t, d, fsType)
		before := probe(t, d.File)
		if err := Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: fsType, Resume: true}); err != nil {
			t.Errorf("%s: %v", fsType, err)
		}
		if after := probe(t, d.File); after.UUID != before.UUID {
			t.Errorf("a finished %s was formatted again", fsType)
		}
	}
	d := attach(t, image(t, leastSize("ext4")))
	format(t, d, "ext4")
	mountOnce(t, d)
	err := Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: "ext4", Resume: true})
	wantKind(t, err, backends.InUse)
}

// A device that was being formatted as one type is not formatted as another.
func TestResumeAsAnotherType(t *testing.T) {
	d := attach(t, image(t, leastSize("xfs")))
	format(t, d, "xfs")
	err := Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: "ext4", Resume: true})
	wantKind(t, err, backends.InUse)
	if err != nil && (!strings.Contains(err.Error(), "xfs") || !strings.Contains(err.Error(), "ext4")) {
		t.Errorf("the error does not name both types: %v", err)
	}
}

func TestMissing(t *testing.T) {
	wantKind(t, Missing("ntfs"), backends.Invalid)
	for _, fsType := range append(Types(), "ext3") {
		if err := Missing(fsType); err != nil {
			wantKind(t, err, backends.Unsupported)
			if !strings.Contains(err.Error(), "progs") {
				t.Errorf("the error names no package: %v", err)
			}
		}
	}
}

// mountOnce mounts the filesystem and unmounts it, in the mount namespace of the test.
func mountOnce(t *testing.T, d *device.Device) {
	t.Helper()
	dir := mounted(t, d, "ext4")
	if err := os.WriteFile(dir+"/data", []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
}

// mounted mounts the filesystem until the test ends.
func mounted(t *testing.T, d *device.Device, fsType string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(d.Path, dir, fsType, 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, 0) }) // some tests have unmounted it by then
	return dir
}

// A tool that is told to stop does, and the device is free afterwards.
func TestToolIsKilledAtDeadline(t *testing.T) {
	d := attach(t, image(t, mib))
	locked, err := lockDevice(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = run(ctx, command{tool: "sleep", args: []string{"60"}, device: locked})
	wantKind(t, err, backends.Unavailable)
	locked.unlock()
	again, err := lockDevice(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	again.unlock()
}

// A tool that must not be stopped goes on and keeps the device's lock, also when nobody waits for it.
func TestToolKeepsLock(t *testing.T) {
	d := attach(t, image(t, mib))
	locked, err := lockDevice(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = run(ctx, command{tool: "sleep", args: []string{"3"}, device: locked, mustEnd: true})
	wantKind(t, err, backends.Busy)
	locked.unlock()
	_, err = lockDevice(d.Path)
	wantKind(t, err, backends.Busy)
	wantKind(t, Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: "ext4"}), backends.Busy)
	fd, err := unix.Open(d.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil { // until the tool has ended
		t.Error(err)
	}
}
