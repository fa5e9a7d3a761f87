package filesystem

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

func format(t *testing.T, d *device.Device, fsType string) {
	t.Helper()
	needTools(t, fsType)
	if _, err := NewTools(1).Format(t.Context(), request(d, fsType)); err != nil {
		t.Fatal(err)
	}
}

// request asks for a filesystem on the device of volume v.
func request(d *device.Device, fsType string) Request {
	return laidOut(d, fsType, classes.Geometry{})
}

func laidOut(d *device.Device, fsType string, g classes.Geometry) Request {
	return Request{Path: d.Path, Held: d.File, FSType: fsType, Volume: "v", Geometry: g}
}

// on marks a device as being formatted.
func (m Mark) on(t *testing.T, d *device.Device) {
	t.Helper()
	if err := m.write(t.Context(), d.File, d.SizeBytes); err != nil {
		t.Fatal(err)
	}
}

func TestFormat(t *testing.T) {
	for _, fsType := range Types() {
		t.Run(fsType, func(t *testing.T) {
			d := attach(t, image(t, classes.Least(fsType)))
			format(t, d, fsType)
			found := probe(t, d.File)
			if found.Type != fsType || found.UUID == "" || found.Incomplete || found.Dirty {
				t.Errorf("found %+v, want a clean %s with a UUID", found, fsType)
			}
			if NeedsGrow(found, d.SizeBytes) {
				t.Errorf("a new filesystem of %d bytes is to grow on a device of %d", found.SizeBytes, d.SizeBytes)
			}
			_, err := NewTools(1).Format(t.Context(), request(d, fsType))
			wantKind(t, err, backends.InUse)
		})
	}
}

// A new filesystem fills its device, whatever the size: otherwise each stage would grow it in vain.
func TestNewFilesystemNeedsNoGrow(t *testing.T) {
	for fsType, sizes := range map[string][]int64{
		"ext4": {2 * mib, 8*mib + 512, 16 * mib, 17*mib + 3072, 128 * mib, 129 * mib, 130 * mib, 137 * mib, 513 * mib,
			1<<30 + mib, 5<<30 + 512, 40<<30 + 2*mib},
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
		"unknown type": {request(d, "ext3"), backends.Invalid},
		"no geometry":  {laidOut(d, "btrfs", classes.Geometry{BlockSize: 4096}), backends.Invalid},
		"too small":    {request(small, "ext4"), backends.OutOfRange},
		"another node": {Request{Path: other.Path, Held: d.File, FSType: "ext4", Volume: "v"}, backends.Unavailable},
		"no node":      {Request{Path: "/dev/none-such", Held: d.File, FSType: "ext4", Volume: "v"}, backends.Unavailable},
		"long handle": {Request{Path: d.Path, Held: d.File, FSType: "ext4", Volume: strings.Repeat("v", markSize)},
			backends.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewTools(1).Format(t.Context(), test.req)
			wantKind(t, err, test.want)
		})
	}
	_, err := NewTools(1).Format(t.Context(), laidOut(other, "ext4", classes.Geometry{Inodes: 1 << 31}))
	wantKind(t, err, backends.Unknown)
	for _, d := range []*device.Device{d, small} {
		if found := probe(t, d.File); !found.Blank() {
			t.Errorf("%s holds %s", d, found)
		}
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
func mountOnce(t *testing.T, d *device.Device, fsType string) {
	t.Helper()
	dir := mounted(t, d, fsType)
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
	t.Cleanup(func() { _ = unix.Unmount(dir, 0) }) // some tests have unmounted it already
	return dir
}

// pipe creates a FIFO, by which a shell script that stands for a tool reports or waits.
func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// heard waits until a script reports.
func heard(t *testing.T, pipe string) {
	t.Helper()
	if _, err := os.ReadFile(pipe); err != nil {
		t.Fatal(err)
	}
}

// A tool that is told to stop does so, and the device is free afterwards.
func TestToolIsKilledAtDeadline(t *testing.T) {
	d := attach(t, image(t, mib))
	locked, err := lockDevice(t.Context(), d.Path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, ended := pipe(t), make(chan error, 1)
	go func() {
		_, err := run(ctx, command{tool: "sh", args: []string{"-c", "echo > " + begun + "; exec sleep 3600"}, device: locked})
		ended <- err
	}()
	heard(t, begun)
	cancel()
	wantKind(t, <-ended, backends.Unavailable)
	locked.unlock()
	again, err := lockDevice(t.Context(), d.Path)
	if err != nil {
		t.Fatal(err)
	}
	again.unlock()
}

// A tool that must not be stopped continues when it is told to end, and keeps the device's lock meanwhile.
func TestToolKeepsLock(t *testing.T) {
	d := attach(t, image(t, mib))
	locked, err := lockDevice(t.Context(), d.Path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, goOn, ended := pipe(t), pipe(t), make(chan error, 1)
	go func() {
		script := "echo > " + begun + "; read line < " + goOn
		_, err := run(ctx, command{tool: "sh", args: []string{"-c", script}, device: locked, mustEnd: true})
		ended <- err
	}()
	heard(t, begun)
	cancel()
	_, err = lockDevice(t.Context(), d.Path)
	wantKind(t, err, backends.Busy)
	_, err = NewTools(1).Format(t.Context(), request(d, "ext4"))
	wantKind(t, err, backends.Busy)
	if err := os.WriteFile(goOn, []byte("go on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it came to its end, and the error is %v", err)
	}
	locked.unlock()
	again, err := lockDevice(t.Context(), d.Path)
	if err != nil {
		t.Fatal(err)
	}
	again.unlock()
}

// A tool that is told to end takes its children with it: nothing writes to the device any more.
func TestToolIsKilledWithItsChildren(t *testing.T) {
	d := attach(t, image(t, mib))
	locked, err := lockDevice(t.Context(), d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer locked.unlock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	child := filepath.Join(t.TempDir(), "child")
	ended := make(chan error, 1)
	go func() {
		_, err := run(ctx, command{tool: "sh", args: []string{"-c",
			"sleep 60 & echo $! > " + child + ".new; mv " + child + ".new " + child + "; wait"}, device: locked})
		ended <- err
	}()
	var pid int
	for pid == 0 {
		if text, err := os.ReadFile(child); err == nil {
			_, _ = fmt.Sscan(string(text), &pid)
		}
		<-time.After(time.Millisecond)
	}
	cancel()
	wantKind(t, <-ended, backends.Unavailable)
	for deadline := time.Now().Add(enough); unix.Kill(pid, 0) == nil; <-time.After(time.Millisecond) {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			break // dead, and not reaped
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d, which the tool started, still runs", pid)
		}
	}
}
